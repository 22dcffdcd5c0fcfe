"""German, for the guard. Pure data; read by `lexicons`."""

from __future__ import annotations

from typing import Final

from cachewright.policy.lexicons.lexicon import Lexicon, alternatives, numerals, particle_verbs, table, words

_DIGITS: Final = ("ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")
_TENS: Final = ("zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig")
_WRITTEN_TOGETHER: Final = {
    f"{digit}und{ten}": 10 * (tens + 2) + ones + 1
    for tens, ten in enumerate(_TENS)
    for ones, digit in enumerate(_DIGITS)
}
"""einundzwanzig to neunundneunzig."""

GERMAN: Final = Lexicon(
    language="de",
    function_words=words(
        """
        der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner dieser diese dieses
        diesen diesem jeder jede jedes jeden alle alles man sich ich mich mir mein meine meinen meinem meiner meines
        du dich dir dein deine er ihn ihm sein seine seinen seinem seiner sie ihr ihre ihren ihrem ihrer es wir uns
        unser unsere euch
        wer wen wem wessen was welche welcher welches welchen welchem wann wo wohin woher warum wieso weshalb wie
        wieviel wofür womit worauf
        bin bist ist sind seid waren wäre sein gewesen habe hast hat haben hatte hätte wird werden wurde wurden
        würde kann kannst können könnte darf dürfen dürfte muss muß müssen soll sollen sollte wollen möchte mag
        gibt
        und oder aber denn wenn ob als dass daß weil da damit bevor nachdem während bis
        von vom in im ins an am auf aus bei beim zu zum zur für mit ohne nach über unter um durch gegen vor hinter
        zwischen seit ab
        nicht nie niemals auch noch nur schon sehr hier dort mehr viel viele wenig denn etwas jemand bitte
        """
    ),
    telling_words=words(
        """
        zurücksetzen ändern kündigen löschen einrichten installieren deinstallieren aktivieren deaktivieren öffnen
        schließen kaufen verkaufen bezahlen funktioniert funktionieren machen mache passwort konto rechnung
        bestellung lieferung versand kosten kostet preis tage stunden wochen monate jahre unterschied bedeutet
        hilfe fehler fehlermeldung adresse kunden nebenwirkungen rückgabe vertrag
        """
    ),
    negations=words(
        "nicht nie niemals kein keine keinen keinem keiner keines niemand nichts nirgends weder noch_nie ohne"
    ),
    restrictions=words("nur ausschließlich"),
    mild_restrictions=words("bloß lediglich allein einzig einzige einzigen"),
    idle_phrases=(("oder", "nicht"), ("nicht", "nur"), ("ob", "nicht")),
    opposites=alternatives(
        """
        aktivier* anschalt* einschalt* anzuschalten einzuschalten erlaub* zulass* freischalt* freigeb* / deaktivier* abschalt* ausschalt* abzuschalten auszuschalten verbiet* verbot* sperr* blockier*
        schalt_ein schalt_an mach_an stell_an / schalt_aus schalt_ab mach_aus stell_aus stell_ab
        mach_auf / mach_zu
        meld_an logg_ein / meld_ab logg_aus
        lad_hoch / lad_herunter lad_runter
        nehm_zu / nehm_ab
        steig_ein / steig_aus
        zahl_ein / zahl_aus
        erlaubt legal zulässig zugelassen / verboten illegal unzulässig
        anmeld* einlogg* anzumelden einzuloggen registrier* / abmeld* auslogg* abzumelden auszuloggen
        start* begin* anfang* fortsetz* / stopp* beend* end* aufhör* abbrech* pausier*
        öffn* geöffnet aufmach* / schließ* geschlossen zumach*
        erhöh* steiger* vergrößer* steig* mehr zunehm* zunahm* / verringer* reduzier* senk* verkleiner* sink* weniger abnehm* abnahm*
        maxim* höchst* / minim* mindest*
        vor bevor vorher / nach nachdem nachher danach
        früh* / spät*
        erst* / letzt*
        nächst* kommend* / letzt* vorig* vergangen*
        alt alte alten alter altes / neu neue neuen neuer neues jung junge jungen
        hinzufüg* hinzuzufügen zufüg* einfüg* / entfern* lösch* gelöscht
        installier* / deinstallier*
        erstell* anleg* anzulegen / lösch* gelöscht
        hochlad* hochzuladen hochgeladen upload* / herunterlad* herunterzuladen heruntergeladen runterlad* download*
        importier* import / exportier* export
        einfuhr einführ* / ausfuhr ausführ*
        verschlüssel* / entschlüssel*
        upgrade* / downgrade*
        send* versend* verschick* schick* gesendet / empfang* erhalt* bekomm*
        kauf* gekauft / verkauf* / miet* gemietet leih*
        mieter* / vermieter*
        arbeitgeber* / arbeitnehmer*
        käufer* / verkäufer*
        einzahl* / auszahl* abheb*
        einnahm* gewinn* / ausgab* verlust*
        brutto* / netto*
        eingang* eingehend* / ausgang* ausgehend*
        annehm* akzeptier* genehmig* / ablehn* abzulehnen
        mit / ohne
        ja / nein
        wahr / falsch
        richtig* korrekt* gültig* / falsch* ungültig*
        sicher* ungefährlich* / gefährlich* unsicher* schädlich*
        gut gute guten guter besser beste besten / schlecht* schlimm*
        vorteil* / nachteil*
        einfach* leicht leichte / schwer* schwierig*
        schnell* / langsam*
        groß* größer* größte* / klein*
        lang lange länger längste verlänger* / kurz* kürzer* verkürz*
        hoch hohe hohen höher / niedrig* tief*
        heiß* warm* / kalt* kälte kühl*
        billig* günstig* / teuer* teure*
        kostenlos* gratis / kostenpflichtig* bezahlt*
        öffentlich* / privat*
        intern* innen* / extern* außen*
        oben ober* / unten unter*
        links linke* / rechts rechte*
        nord* / süd* / ost* / west*
        zeile* / spalte*
        positiv* / negativ*
        immer / nie niemals / manchmal selten
        vorübergehend* temporär* / dauerhaft* permanent*
        manuell* / automatisch*
        lokal* / global* entfernt*
        lesen liest gelesen / schreib* geschrieben
        mann männer männlich* junge jungen / frau frauen weiblich* mädchen
        sohn söhne / tochter töchter
        bruder brüder / schwester*
        vater / mutter
        ehemann / ehefrau
        kind kinder kindern / erwachsene*
        hund* / katze*
        arzt ärzte ärztin / patient*
        akut* / chronisch*
        tag tagsüber / nacht nachts
        morgens vormittag* / mittag* / nachmittag* / abend* abends
        täglich* / wöchentlich* / monatlich* / jährlich* / stündlich*
        frühling / sommer / herbst / winter
        frühstück / mittagessen / abendessen
        rot* / grün* / blau* / gelb* / schwarz* / weiß*
        wann / wo wohin / wer / warum wieso weshalb / wieviel / woher
        bin ist sind / war waren / wird werde werden
        habe hat haben / hatte hatten
        alle alles sämtliche jeder jede jedes / einige manche mehrere / nur
        jemand / niemand
        hin hinweg hinflug hinfahrt / zurück rückweg rückflug rückfahrt
        verbind* / trenn*
        einschließlich inklusive / ausschließlich exklusive ausgenommen
        pflicht verpflichtend* / freiwillig* optional*
        """
    ),
    prefixes=(
        ("", "un"),
        ("", "nicht"),
        ("ein", "aus"),
        ("an", "ab"),
        ("auf", "zu"),
        ("hin", "her"),
        ("vor", "nach"),
        ("über", "unter"),
        ("ver", "ent"),
        ("be", "ent"),
        ("auf", "ab"),
        ("auf", "ent"),
        ("hoch", "herunter"),
        ("hoch", "runter"),
        ("hinzu", "weg"),
        ("", "ent"),
        ("", "de"),
        ("", "in"),
        ("", "ir"),
        ("", "miss"),
        ("", "ver"),
        ("im", "ex"),
        ("hyper", "hypo"),
        ("prä", "post"),
        ("mini", "maxi"),
    ),
    particles=particle_verbs(
        """
        schalt: schalte schaltest schaltet schalten / ein an aus ab
        mach: mache macht machen / an aus auf zu
        stell: stelle stellt stellen / ein an aus ab
        meld: melde meldest meldet melden / an ab
        logg: logge loggst loggt loggen / ein aus
        lad: lade lädst lädt laden / hoch herunter runter
        nehm: nehme nimmst nimmt nehmen / zu ab
        steig: steige steigt steigen / ein aus
        zahl: zahle zahlt zahlen / ein aus
        """
    ),
    particles_come_last=True,
    speaker_acts=words("ich"),
    speaker_else=words("mir mich mein meine meinen meinem meiner meines"),
    directions=words(
        "zu zum zur in ins nach von vom aus über unter als für durch vor gegen auf an bei mit statt anstatt"
    ),
    roles=(words("von vom aus ab"), words("zu zum zur nach bis ins")),
    joiners=words("und oder sowie & / , zwischen bzw noch"),
    numerals={
        **numerals(
            "null XX-eins|eins zwei|zwo drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn "
            "fünfzehn sechzehn siebzehn achtzehn neunzehn"
        ),
        **{ten: 10 * (tens + 2) for tens, ten in enumerate(_TENS)},
        **_WRITTEN_TOGETHER,
        "dreissig": 30,
        "dutzend": 12,
        "einhundert": 100,
        "eintausend": 1000,
    },
    scales={
        "hundert": 100,
        "tausend": 1000,
        "million": 1_000_000,
        "millionen": 1_000_000,
        "milliarde": 1_000_000_000,
        "milliarden": 1_000_000_000,
    },
    ordinals={
        f"{stem}{ending}": value
        for value, stem in enumerate(("zweit", "dritt", "viert", "fünft", "sechst", "siebt", "acht"), 2)
        for ending in ("e", "en", "er", "es", "em")
    },
    units=table(
        """
        s: sekunde sekunden sek
        min: minute minuten
        h: stunde stunden std
        day: tag tage tagen tages
        week: woche wochen
        month: monat monate monaten
        year: jahr jahre jahren
        usd: dollar dollars usd
        eur: euro euros eur
        gbp: gbp
        pound: pfund
        cent: cent cents
        chf: franken chf
        m: meter metern
        km: kilometer kilometern
        cm: zentimeter zentimetern
        mile: meile meilen
        kg: kilo kilogramm kilos
        g: gramm
        mg: milligramm
        ug: mikrogramm
        ton: tonne tonnen
        l: liter litern
        ml: milliliter
        b: byte bytes
        bit: bit bits
        kb: kilobyte
        mb: megabyte
        gb: gigabyte
        tb: terabyte
        w: watt
        kw: kilowatt
        v: volt
        c: celsius
        °: grad
        f: fahrenheit
        %: prozent
        x: mal
        """
    ),
    dates=table(
        """
        m1: januar jänner
        m2: februar
        m3: märz
        m4: april
        m5: mai
        m6: juni
        m7: juli
        m8: august
        m9: september
        m10: oktober
        m11: november
        m12: dezember
        d1: montag montags
        d2: dienstag dienstags
        d3: mittwoch mittwochs
        d4: donnerstag donnerstags
        d5: freitag freitags
        d6: samstag samstags sonnabend
        d7: sonntag sonntags
        weekend: wochenende wochenenden
        today: heute
        tomorrow: morgen
        yesterday: gestern
        overmorrow: übermorgen
        ereyesterday: vorgestern
        """
    ),
    ambiguous_dates=frozenset(),
    quiet_letters=words("s a u d h o"),
    decimal_comma=True,
)
