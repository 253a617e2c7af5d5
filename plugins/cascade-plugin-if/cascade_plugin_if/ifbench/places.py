"""The countries of Africa and the capitals of Europe north of 45 degrees, with the other names they go by.

Countries are the 54 member states of the United Nations. Capitals are in the order of their latitude, from north to south;
Kyiv (50.45° N) is among them.
"""

from __future__ import annotations

from collections.abc import Mapping

_COUNTRIES = """
algeria|angola|benin|botswana|burkina faso|burundi|cabo verde,cape verde|cameroon|central african republic|chad|comoros,the comoros
congo,republic of the congo,congo-brazzaville,republic of congo,congo republic
democratic republic of the congo,dr congo,drc,congo-kinshasa,democratic republic of congo,dr of the congo
cote d'ivoire,ivory coast|djibouti|egypt|equatorial guinea|eritrea|eswatini,swaziland|ethiopia|gabon|gambia,the gambia|ghana|guinea
guinea-bissau,guinea bissau|kenya|lesotho|liberia|libya|madagascar|malawi|mali|mauritania|mauritius|morocco|mozambique|namibia|niger
nigeria|rwanda|sao tome and principe,sao tome & principe|senegal|seychelles,the seychelles|sierra leone|somalia|south africa
south sudan|sudan|tanzania|togo|tunisia|uganda|zambia|zimbabwe
"""
COUNTRIES: Mapping[str, str] = {
    name: names.split(",")[0] for names in _COUNTRIES.replace("\n", "|").split("|") for name in names.split(",") if name
}
"""Every name of a country, small and without accents, to its first name here."""

CAPITALS: tuple[frozenset[str], ...] = tuple(
    frozenset(names.split(","))
    for names in """reykjavik|helsinki|oslo|tallinn|stockholm|riga|moscow|copenhagen|vilnius|minsk|dublin|berlin|amsterdam|warsaw
    london|brussels|kyiv,kiev|prague|luxembourg,luxembourg city|paris|vienna|bratislava|budapest|vaduz|chisinau|bern,berne
    ljubljana|zagreb""".replace("\n    ", "|").split("|")
)
"""Each capital by its names, from north to south."""
