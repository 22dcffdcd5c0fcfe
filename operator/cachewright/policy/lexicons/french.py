"""French, for the guard. Pure data; read by `lexicons`."""

from __future__ import annotations

from typing import Final

from cachewright.policy.lexicons.lexicon import Lexicon, alternatives, numerals, table, words

FRENCH: Final = Lexicon(
    language="fr",
    function_words=words(
        """
        le la les l' un une des du de d' ce cet cette ces mon ma mes ton ta tes son sa ses notre nos votre vos leur
        leurs je j' me m' moi tu te t' toi il elle on nous vous ils elles se s' lui eux y en
        qui que qu' quoi dont où quel quelle quels quelles quand comment pourquoi combien lequel laquelle est-ce
        suis es est sommes êtes sont était étaient sera seront être été ai as a avons avez ont avait aura avoir eu
        fait faire fais font peut peux puis-je peut-on pouvez pouvons pouvoir doit dois dois-je faut dois-je doit-on
        veux veut voudrais
        et ou mais donc car ni si quand lorsque comme parce puisque
        à au aux dans sur sous avec sans pour par entre chez vers depuis pendant avant après contre
        ne n' pas plus jamais rien aucun aucune très aussi encore déjà tout toute tous toutes même moins trop ici là
        c' ça cela ceci
        """
    ),
    telling_words=words(
        """
        réinitialiser changer annuler résilier supprimer activer désactiver installer désinstaller ouvrir fermer
        acheter vendre payer fonctionne marche compte mot passe facture commande livraison prix coûte jours heures
        semaines mois années différence signifie aide erreur adresse client remboursement effets secondaires
        """
    ),
    negations=words("pas jamais rien aucun aucune personne sans ni nulle"),
    restrictions=words("seulement uniquement exclusivement"),
    mild_restrictions=words("juste seul seule simplement que"),
    idle_phrases=(("ou", "pas"), ("pas", "seulement"), ("pourquoi", "pas")),
    opposites=alternatives(
        """
        activ* autoris* permet* permis allum* débloqu* / désactiv* interdi* interdit* éteind* éteins bloqu*
        légal* autorisé* / illégal* interdit*
        connect* / déconnect*
        inscri* abonn* / désinscri* désabonn* résili*
        commenc* début* démarr* lanc* / arrêt* fini* termin* fin
        ouvr* ouvert* / ferm*
        verrouill* / déverrouill*
        augment* hauss* plus_de / diminu* rédui* baiss* moins_de
        maxim* / minim*
        avant / après
        tôt / tard
        premier* première* / dernier* dernière*
        prochain* suivant* / dernier* dernière* précédent*
        ancien* vieux vieille vieil / nouveau nouvel nouvelle* neuf neuve récent* jeune*
        ajout* insér* / supprim* enlev* retir* effac*
        install* / désinstall*
        mont* / démont*
        cré* / supprim* détrui*
        téléverser envoyer upload* / télécharg* recevoir reçoi* reçu
        import* / export*
        chiffr* / déchiffr*
        compress* / décompress*
        achet* achat* / vend* vente* / lou* location*
        propriétaire* bailleur* / locataire*
        employeur* / employé* salarié*
        vendeur* / acheteur* client*
        déposer dépôt* vers* / retir* retrait*
        brut* / net nette nets
        entrée* entrant* / sortie* sortant*
        accept* approuv* / refus* rejet*
        avec / sans
        oui / non
        vrai* / faux fausse*
        correct* valide* / incorrect* invalide*
        sûr sûre sans_danger / dangereu* nocif* nocive*
        bon bonne meilleur* bien mieux / mauvais* mal pire*
        avantage* / inconvénient*
        facile* simple* / difficile* compliqué*
        rapide* vite / lent*
        grand* gros grosse* / petit*
        long longue* allong* / court*
        haut* / bas basse*
        chaud* / froid*
        gratuit* / payant*
        public* publique* / privé*
        intern* intérieur* / extern* extérieur*
        gauche / droite
        nord / sud / est_de l'est / ouest
        ligne* / colonne*
        positif* positive* / négatif* négative*
        toujours / jamais / parfois rarement
        temporaire* / permanent* définitif* définitive*
        manuel* / automatique*
        lire lis lit lu / écri*
        homme* masculin* garçon* / femme* féminin* fille*
        fils / fille filles
        frère* / sœur* soeur*
        père papa / mère maman
        mari / épouse femme
        enfant* bébé* / adulte*
        chien* / chat chats
        médecin* / patient*
        aigu* / chronique*
        jour journée / nuit*
        matin* / midi / après-midi / soir*
        quotidien* / hebdomadaire* / mensuel* / annuel*
        printemps / été / automne / hiver
        rouge* / vert verte* / bleu* / jaune* / noir* / blanc* blanche*
        quand / où / qui / pourquoi / combien
        est sont suis / était étaient / sera seront
        tous toutes tout chaque / quelques certains certaines plusieurs / seulement seul
        quelqu'un / personne
        aller / retour
        inclu* compris / exclu* sauf hormis
        obligatoire* / facultatif* facultative* optionnel*
        plus / moins
        """
    ),
    prefixes=(
        ("", "in"),
        ("", "im"),
        ("", "il"),
        ("", "ir"),
        ("", "dés"),
        ("", "dé"),
        ("", "més"),
        ("", "non-"),
        ("", "mal"),
        ("", "anti"),
        ("en", "dé"),
        ("em", "dé"),
        ("im", "ex"),
        ("sur", "sous"),
        ("pré", "post"),
        ("hyper", "hypo"),
        ("mono", "poly"),
        ("macro", "micro"),
    ),
    particles={},
    speaker_acts=words("je j' puis-je dois-je"),
    speaker_else=words("me m' moi mon ma mes"),
    directions=words("à au aux vers en dans de du des d' par pour que sur sous contre avant après avec"),
    roles=(words("depuis"), words("vers jusqu'à")),
    joiners=words("et ou ni & / , entre"),
    numerals={
        **numerals(
            "zéro XX-un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept "
            "dix-huit dix-neuf"
        ),
        **numerals(
            "vingt trente quarante cinquante soixante soixante-dix|septante quatre-vingts|quatre-vingt",
            20,
            10,
        ),
        "quatre-vingt-dix": 90,
        "nonante": 90,
        "douzaine": 12,
        "vingt-deux": 22,
        "vingt-quatre": 24,
        "vingt-cinq": 25,
    },
    scales={
        "cent": 100,
        "cents": 100,
        "mille": 1000,
        "million": 1_000_000,
        "millions": 1_000_000,
        "milliard": 1_000_000_000,
        "milliards": 1_000_000_000,
    },
    ordinals={
        "premier": 1,
        "première": 1,
        **numerals("deuxième|second|seconde troisième quatrième cinquième sixième septième huitième", 2),
    },
    units=table(
        """
        s: secondes sec
        min: minute minutes
        h: heure heures
        day: jour jours
        week: semaine semaines
        month: mois
        year: an ans année années
        usd: dollar dollars usd
        eur: euro euros eur
        pound: livre livres
        chf: franc francs chf
        m: mètre mètres
        km: kilomètre kilomètres
        cm: centimètre centimètres
        kg: kilo kilos kilogramme kilogrammes
        g: gramme grammes
        mg: milligramme milligrammes
        ton: tonne tonnes
        l: litre litres
        ml: millilitre millilitres
        b: octet octets
        kb: ko kilooctet kilooctets
        mb: mo mégaoctet mégaoctets
        gb: go gigaoctet gigaoctets
        tb: to téraoctet téraoctets
        %: pourcent
        x: fois
        c: celsius
        °: degré degrés
        """
    ),
    dates=table(
        """
        m1: janvier
        m2: février
        m3: mars
        m4: avril
        m5: mai
        m6: juin
        m7: juillet
        m8: août aout
        m9: septembre
        m10: octobre
        m11: novembre
        m12: décembre
        d1: lundi lundis
        d2: mardi mardis
        d3: mercredi mercredis
        d4: jeudi jeudis
        d5: vendredi vendredis
        d6: samedi samedis
        d7: dimanche dimanches
        weekend: week-end weekend
        today: aujourd'hui
        tomorrow: demain
        yesterday: hier
        """
    ),
    ambiguous_dates=frozenset(),
    quiet_letters=words("a à y l d j m t s n c e o"),
    decimal_comma=True,
)
