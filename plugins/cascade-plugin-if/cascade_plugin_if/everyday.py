"""The everyday words of short answers, by language: greetings, thanks, yes and no, and the small words around them.

An identifier of languages knows sentences; of "Да, конечно." or "नमस्ते" it guesses. Where such words make up a short
text, they decide (`known_in`). A word may stand in several lists. It says nothing about texts of other words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cascade_plugin_if.words import listed

# fmt: off
_WORDS: Mapping[str, frozenset[str]] = {
    "ar": listed("نعم لا مرحبا مرحباً أهلا أهلاً شكرا شكراً جزيلا جزيلاً عفوا عفواً السلام عليكم وعليكم صباح مساء الخير من فضلك كيف حالك أنا بخير حسنا حسناً"),
    "bg": listed("да не здравей здравейте благодаря мерси моля разбира се много ви добре довиждане добро добър ден утро вечер как си сте и аз"),
    "cs": listed("ano ne ahoj dobrý den ráno večer děkuji děkuju díky mockrát prosím samozřejmě na shledanou nashledanou jak se máš máte tak"),
    "da": listed("ja nej tak hej goddag godmorgen farvel mange selvfølgelig venligst hvordan har du det velkommen"),
    "de": listed("ja nein hallo danke bitte schön sehr vielen dank guten gute tag morgen abend nacht natürlich klar gerne gern tschüss auf wiedersehen wie geht es dir ihnen gut ich nicht genau"),
    "el": listed("ναι όχι γεια σου σας ευχαριστώ πολύ παρακαλώ φυσικά καλημέρα καλησπέρα καληνύχτα αντίο τι κάνεις κάνετε καλά"),
    "en": listed("yes no hello hi hey thanks thank you please sure of course okay ok goodbye bye good morning evening night day welcome how are is it fine i am not"),
    "es": listed("sí no hola gracias muchas por favor claro que buenos buenas días tardes noches adiós hasta luego mañana cómo estás está de nada bien muy supuesto bienvenido"),
    "fa": listed("بله خیر نه سلام ممنون مرسی متشکرم خیلی لطفا لطفاً البته خداحافظ صبح بخیر شب حال شما چطور است خوبم"),
    "fi": listed("kyllä joo ei hei moi terve kiitos paljon ole hyvä tietenkin hyvää huomenta päivää iltaa yötä näkemiin mitä kuuluu"),
    "fr": listed("oui non bonjour bonsoir salut merci beaucoup s'il vous te plaît bien sûr au revoir bonne nuit journée soirée comment allez ça va de rien je ne sais pas d'accord bienvenue à bientôt tous"),
    "he": listed("כן לא שלום תודה רבה בבקשה כמובן להתראות בוקר ערב לילה טוב מה שלומך נשמע"),
    "hi": listed("हाँ हां नहीं जी नमस्ते नमस्कार धन्यवाद शुक्रिया कृपया ज़रूर जरूर बिल्कुल ठीक है हूँ मैं आप आपका कैसे हैं अलविदा बहुत स्वागत दोस्त दोस्तों"),
    "hu": listed("igen nem szia helló köszönöm szépen kérem természetesen persze jó reggelt napot estét éjszakát viszontlátásra hogy vagy van"),
    "id": listed("ya tidak halo terima kasih banyak tolong tentu saja selamat pagi siang sore malam sampai jumpa apa kabar baik sama-sama"),
    "it": listed("sì no ciao salve grazie mille molte prego per favore certo certamente buongiorno buonasera buonanotte arrivederci come stai sta va bene di niente benvenuto tutti"),
    "mr": listed("हो नाही नमस्कार नमस्ते धन्यवाद कृपया नक्कीच ठीक आहे आहेत आहात मी तुम्ही तू कसे कसा कशी खूप स्वागत"),
    "ne": listed("हो होइन छैन नमस्ते नमस्कार धन्यवाद कृपया अवश्य ठीक छ तपाईं तपाईंलाई कस्तो धेरै स्वागत"),
    "nl": listed("ja nee hallo hoi dag dank je u wel bedankt alsjeblieft alstublieft natuurlijk goedemorgen goedemiddag goedenavond goede tot ziens hoe gaat het met goed graag gedaan"),
    "no": listed("ja nei takk tusen hei god morgen dag kveld natt ha det selvfølgelig vennligst hvordan har du velkommen"),
    "pl": listed("tak nie cześć dzień dobry wieczór dziękuję bardzo dzięki proszę oczywiście do widzenia dobranoc jak się masz dobrze"),
    "pt": listed("sim não olá oi obrigado obrigada muito por favor claro que bom boa dia tarde noite tchau adeus até logo tudo bem como está de nada com certeza"),
    "ro": listed("da nu bună salut mulțumesc mulţumesc mult foarte vă rog desigur ziua dimineața seara noapte revedere la ce mai faci bine"),
    "ru": listed("да нет привет здравствуй здравствуйте спасибо большое пожалуйста конечно хорошо добрый доброе день утро вечер спокойной ночи пока до свидания как дела ты вы я не"),
    "sv": listed("ja nej tack så mycket hej god morgon dag kväll natt hejdå självklart naturligtvis snälla hur mår du välkommen bra"),
    "sw": listed("ndiyo ndio hapana habari hujambo sijambo jambo asante sana tafadhali karibu kwaheri rafiki yangu za asubuhi jioni mchana yako zenu mzuri nzuri hakika bila shaka"
        " ni na ya wa la cha vya kwa katika kama kuwa hii huyu hiyo yake wake wao sisi mimi wewe yeye ninyi leo kesho jana sasa"
        " pia lakini au si sio nadhani nina ana wana tuna kuna hakuna watu mtu mtoto watoto chakula maji nyumba nyumbani kazi"
        " siku usiku vizuri vyema mapema kila moja mbili zaidi kidogo nani nini wapi lini kwenda kula kusoma kufanya"),
    "tr": listed("evet hayır merhaba selam teşekkürler teşekkür ederim çok lütfen tabii tabi ki elbette günaydın iyi günler akşamlar geceler hoşça kal görüşürüz nasılsın nasılsınız hoş geldiniz"),
    "uk": listed("так ні привіт вітаю дякую дуже будь ласка звичайно добре добрий доброго день ранок вечір ранку надобраніч бувай до побачення як справи ти ви"),
    "ur": listed("ہاں جی نہیں سلام السلام علیکم شکریہ بہت براہ کرم ضرور ٹھیک ہے ہوں ہیں آپ کا کیسے خدا حافظ"),
    "vi": listed("vâng không xin chào cảm ơn bạn rất nhiều làm ơn tất nhiên tạm biệt chúc buổi sáng tối ngủ ngon có khỏe"),
}
# fmt: on
_EVERYWHERE = frozenset(("no", "ok", "okay"))


def known_in(words: Sequence[str], languages: frozenset[str]) -> bool | None:
    """Whether a short text is in one of the languages, as far as everyday words tell; `None` if they do not.

    Yes: they hold most of the words, and no other language holds more. No: another holds them all, or holds most, three
    at least, where they hold none.

    Args:
        words: the words of the text, in lower case.
        languages: codes that count as the same language.
    """
    held = {code: sum(1 for word in words if word in known) for code, known in _WORDS.items()}
    mine = max((count for code, count in held.items() if code in languages), default=-1)
    best = max(held.values())
    if mine == best and 2 * best > len(words):
        return True
    if 0 <= mine < best == len(words) and not _EVERYWHERE.issuperset(words):
        return False
    return False if mine == 0 and best >= 3 and 2 * best > len(words) else None
