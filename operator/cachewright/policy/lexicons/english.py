"""English, for the guard. Pure data; read by `lexicons`."""

from __future__ import annotations

from typing import Final

from cachewright.policy.lexicons.lexicon import Lexicon, alternatives, numerals, particle_verbs, table, words

_NOT: Final = (
    "are is was were do does did have has had can could would should will must need might ought dare".split()
)

ENGLISH: Final = Lexicon(
    language="en",
    function_words=words(
        """
        a an the this that these those some any each every all both either neither
        i me my mine myself you your yours yourself he him his she her hers it its we us our ours they them their
        one ones someone something anyone anything everyone everything
        who whom whose which what when where why how whatever whether
        am is are was were be been being do does did doing done have has had having
        can could may might must shall should will would ought
        and or but nor if then than so because as while though although unless until since
        of in on at by to for from with without into onto over under about between through during against among
        within before after above below up down off out around per via like
        not no never there here also just only very too still already again ever more most much many few less
        least other another such same own get gets got please need want let's im i'm i'd i've it's
        """
    ),
    telling_words=words(
        """
        reset change cancel install uninstall enable disable delete remove add create update upgrade fix find check
        open close start stop turn make use work works working set run running write read send buy sell pay learn
        know mean means difference best better good way ways cost price account password error fails failed failing
        does side effects dose dosage days hours weeks months years people time money online free help tell explain
        show give take keep long old new name number order return refund shipping delivery policy address email
        """
    ),
    negations=words("not no never none nobody nothing nowhere neither nor without cannot lacks lacking"),
    idle_phrases=(("or", "not"), ("not", "only"), ("or", "no"), ("no", "matter"), ("why", "not")),
    restrictions=words("only solely exclusively"),
    mild_restrictions=words("just merely simply single alone one"),
    agents=words("by"),
    speaker_acts=words("i"),
    speaker_else=words("me my"),
    auxiliaries=words("is are was were be been being"),
    contractions={
        **{f"{verb}n't": (verb, "not") for verb in _NOT},
        **{f"{verb}nt": (verb, "not") for verb in _NOT if verb not in ("can", "wa", "were", "will")},
        "werent": ("were", "not"),
        "can't": ("can", "not"),
        "cant": ("can", "not"),
        "cannot": ("can", "not"),
        "won't": ("will", "not"),
        "wont": ("will", "not"),
        "shan't": ("shall", "not"),
        "ain't": ("is", "not"),
        "aint": ("is", "not"),
        "i'm": ("i", "am"),
        "what's": ("what", "is"),
        "whats": ("what", "is"),
        "where's": ("where", "is"),
        "who's": ("who", "is"),
        "how's": ("how", "is"),
        "it's": ("it", "is"),
        "that's": ("that", "is"),
        "there's": ("there", "is"),
        "let's": ("let", "us"),
        "login": ("log_in",),
        "logon": ("log_in",),
        "logout": ("log_out",),
        "logoff": ("log_out",),
        "signin": ("sign_in",),
        "signout": ("sign_out",),
        "signup": ("sign_up",),
    },
    opposites=alternatives(
        """
        enabl* activat* unmut* unblock* allow* permit* turn_on switch_on power_on / disabl* deactivat* mut* block* forbid* forbad* prohibit* bann* ban bans deny denies denied denying turn_off switch_off power_off
        allowed permitted legal lawful / forbidden prohibited banned illegal unlawful
        start starts started starting begin* began launch* / stop* end ends ended ending quit quits quitting finish* halt*
        start starts started starting resum* unpaus* / paus* suspend*
        open opens opened opening reopen* / close closes closed closing shut shuts shutting
        lock locks locked locking / unlock*
        increas* rais* rise rises rising rose grow* grew higher highest boost* gain* more / decreas* reduc* lower lowers lowered lowering lowest drop dropped dropping drops shrink* shrank fall falls falling fell declin* lose loses losing lost less fewer
        maxim* max / minim* min
        before prior / after afterward*
        early earlier earliest / late later latest
        first / last final
        next upcoming / previous last past
        next_week next_weekend / this_week this_weekend / last_week last_weekend
        next_month / this_month / last_month
        next_year / this_year / last_year
        next_quarter / this_quarter / last_quarter
        next_monday next_tuesday next_wednesday next_thursday next_friday next_saturday next_sunday / this_monday this_tuesday this_wednesday this_thursday this_friday this_saturday this_sunday / last_monday last_tuesday last_wednesday last_thursday last_friday last_saturday last_sunday
        old older oldest / new newer newest young younger youngest recent*
        add adds added adding insert* append* attach* / remov* delet* detach* eras* drop dropped
        creat* / destroy* delet*
        install installs installed installing installation / uninstall*
        mount mounts mounted mounting / unmount*
        upload* / download*
        import* / export*
        upgrad* / downgrad*
        encrypt* encod* / decrypt* decod*
        compress* zip zipped / decompress* uncompress* extract* unzip*
        send sends sending sent / receiv* receipt
        buy buys buying bought purchas* / sell* sold
        buy buys buying bought purchas* / rent* leas* borrow*
        lend* lent loaned / borrow*
        push pushes pushed pushing / pull pulls pulled pulling fetch*
        deposit* / withdraw* withdrew
        debit* / credit*
        income revenue* profit* / expense* expenditure* loss losses
        asset* / liabilit*
        employer* / employee*
        landlord* lessor* / tenant* lessee* renter*
        plaintiff* claimant* / defendant*
        lender* creditor* / borrower* debtor*
        teacher* / student* pupil*
        doctor* physician* / patient* / nurse*
        buyer* customer* / seller* vendor* merchant*
        parent* / child children kid kids
        adult* grown-up* / child children kid kids infant* baby babies toddler* newborn*
        man men male males boy boys / woman women female females girl girls
        he him his himself / she her hers herself
        husband* groom* bridegroom* / wife wives bride brides
        king kings / queen queens
        prince princes / princess*
        uncle* / aunt aunts auntie*
        nephew* / niece*
        grandfather* grandpa grandad* / grandmother* grandma granny
        grandson* / granddaughter*
        widower* / widow widows
        actor* / actress*
        stallion* / mare mares
        bull bulls / cow cows
        rooster* / hen hens
        minor minors underage / adult* grown-up* / elderly senior seniors
        brother* / sister*
        father* dad dads daddy / mother* mom moms mum mums
        son sons / daughter*
        boyfriend* / girlfriend*
        dog dogs puppy puppies / cat cats kitten*
        hire hires hired hiring / fire fires fired firing dismiss*
        join joins joined joining / leave leaves leaving left
        enter enters entered entering / exit exits exited exiting leave leaves leaving
        arriv* / depart* leave leaves leaving
        accept* approv* / reject* declin* refus* denies denied deny denying
        agree* / disagree*
        grant* assign* / revok* unassign*
        subscrib* / unsubscrib* cancel*
        follow follows followed following / unfollow*
        success* succeed* pass passes passed passing / fail*
        win wins winning won / lose loses losing lost
        true / false
        yes / no
        correct right valid / incorrect wrong invalid
        safe safely harmless / dangerous* unsafe* harmful* risky
        good better best great greatest / bad worse worst poor* awful
        advantage* benefit* pros pro strength* / disadvantage* drawback* cons con weakness* downside*
        love loves loved loving like liked / hate hates hated hating dislike*
        easy easier easiest easily simple simpler / hard harder hardest difficult* tough*
        fast faster fastest quick quicker quickest quickly speed_up / slow slower slowest slowly slow_down
        large larger largest big bigger biggest huge / small smaller smallest little tiny
        long longer longest lengthen* / short shorter shortest shorten*
        tall taller tallest / short shorter shortest
        high higher highest / low lower lowest
        wide wider widest broad* widen* dilat* / narrow* constrict*
        tighten* / loosen*
        rough* / smooth*
        sharp* / blunt* dull*
        loud* noisy / quiet* silent*
        deep* / shallow*
        near nearest close closest / far farthest furthest distant
        thick thicker thickest thicken* / thin thinner thinnest
        heavy heavier heaviest / light lighter lightest
        strong stronger strongest strengthen* / weak weaker weakest weaken*
        hot hotter hottest heat* warm* thaw* melt* defrost* / cold colder coldest cool* freez* frozen chill*
        wet humid* / dry dries drying
        full fuller fill fills filled filling / empty empties emptied emptying drain drains drained
        dark darker darkest darken* / light lighter lightest bright* lighten*
        mild milder slight* / severe* serious*
        stretch* / shrink* shrank
        bull_market / bear_market
        christmas / easter / halloween / thanksgiving / hanukkah / ramadan / diwali
        rich richer richest wealthy / poor poorer poorest
        cheap cheaper cheapest inexpensive / expensive* pricey costly
        free / paid
        public* / private*
        internal* inside indoor* inner / external* outside outdoor* outer
        inbound incoming ingress / outbound outgoing egress
        input* / output*
        upstream / downstream
        upper top / lower bottom
        up upward* / down downward*
        over above / under below beneath
        front / back rear
        left / right
        north northern / south southern / east eastern / west western
        horizontal* / vertical*
        row rows / column*
        forward* / backward* reverse*
        clockwise / counterclockwise anticlockwise
        ascend* / descend*
        plus add adds adding addition / minus subtract* subtraction
        multipl* / divid* division
        positive* / negative*
        even / odd
        even / uneven
        single / double / triple
        half halve* / quarter quarters / double* twice / triple* thrice
        single unmarried / married
        marry married marrying marriage / divorc*
        pregnant / not_pregnant
        alive living / dead
        birth born / death died die dies dying
        inhal* / exhal*
        acid* / alkalin* basic
        hyper* / hypo*
        acute / chronic*
        benign / malignant
        brand-name branded / generic*
        oral* / topical* / intravenous* injected
        with / without
        includ* / exclud* except excepting
        require* requirement* mandatory compulsory obligatory / optional*
        always / never / sometimes seldom rarely
        temporar* / permanent*
        manual* / automatic* automat*
        static* / dynamic*
        synchronous* sync / asynchronous* async
        online / offline
        local* / remote* global*
        local* municipal / national* federal / international*
        abroad / home domestic*
        city / county / state / country
        read reads reading / write writes writing wrote written
        client* / server*
        frontend / backend
        staging / production / development
        stable / unstable beta
        primary / secondary replica* standby
        master / slave
        public_key / private_key
        source* / destination* target*
        encode encodes encoding / decode decodes decoding
        save saves saved saving store stores stored / discard*
        show shows showed showing display* unhid* / hid* conceal*
        expand* / collaps* contract contracts contracted shrink*
        zoom_in / zoom_out
        turn_up / turn_down
        log_in log_on sign_in / log_out sign_out log_off sign_off
        sign_up register* / sign_in log_in
        sign_up register* join / unregister* deregister* unsubscrib*
        opt_in / opt_out
        check_in / check_out
        clock_in / clock_out
        plug_in / unplug*
        scale_up scale_out / scale_down scale_in
        roll_out deploy* / roll_back rollback undeploy*
        backup* back_up / restor*
        connect* / disconnect*
        link links linked linking / unlink*
        cause causes caused causing / cure cures cured curing prevent*
        help helps helped helping / hurt hurts hurting harm*
        attack* / defend* defens*
        win_back / lose
        question* / answer*
        day days daytime / night nights nighttime
        morning* / noon / afternoon* / evening* / midnight
        daily per_day / weekly per_week / monthly per_month / yearly annual* annually per_year / hourly per_hour
        spring springtime / summer* / autumn* / winter*
        breakfast / lunch / dinner supper
        red / green / blue / yellow / black / white / orange / purple / brown / pink / grey gray
        gold / silver / bronze / platinum
        email* / phone call / sms text / letter
        ^_when what_time what_date / ^_where / ^_who ^_whom / ^_why / how_many how_much / how_long / how_far / how_often
        ^_why / ^_how
        who_is who_are / who_was who_were / who_will
        what_is what_are / what_was what_were
        what_do what_does / what_did
        where_is where_are where_do where_does / where_was where_were where_did
        much_is much_are much_do much_does many_do many_does / much_was much_were much_did many_did
        why_is why_are why_do why_does / why_was why_were why_did / why_will
        how_do how_does / how_did
        when_is when_do when_does when_will / when_was when_were when_did
        ^_is ^_are ^_am ^_do ^_does / ^_was ^_were ^_did / ^_will
        was were did / will
        today now current* / past former* historic*
        someone somebody some / nobody none / everyone everybody all every
        all every each entire whole / some few several part partial* / most majority
        all every each entire whole / only one single
        at_least minimum / at_most maximum
        more_than over / less_than under
        import_from / export_to
        full-time full_time / part-time part_time
        gross / net
        fixed / variable adjustable
        debit_card / credit_card
        checking / savings
        vegetarian vegan / meat
        domestic* / international* foreign*
        android / ios iphone ipad
        windows / linux / mac macos
        mobile / desktop
        résumé résumés resumé / resume
        =US / =us
        =IT / =it
        =WHO / =who
        =Polish / =polish
        =Turkey / =turkey
        =China / =china
        =AIDS / =aids
        =March / =march
        =May / =may
        =Go / =go
        =Swift / =swift
        =Rust / =rust
        =Apple / =apple
        =Amazon / =amazon
        =Nice / =nice
        =Reading / =reading
        =Bath / =bath
        =Job / =job
        """
    ),
    prefixes=(
        ("", "un"),
        ("", "non"),
        ("", "in"),
        ("", "im"),
        ("", "il"),
        ("", "ir"),
        ("", "dis"),
        ("", "de"),
        ("", "mis"),
        ("", "anti"),
        ("", "counter"),
        ("up", "down"),
        ("over", "under"),
        ("pre", "post"),
        ("in", "out"),
        ("in", "ex"),
        ("im", "ex"),
        ("in", "de"),
        ("en", "de"),
        ("en", "dis"),
        ("hyper", "hypo"),
        ("tachy", "brady"),
        ("inter", "intra"),
        ("macro", "micro"),
        ("maxi", "mini"),
        ("sub", "super"),
        ("homo", "hetero"),
        ("mono", "poly"),
        ("uni", "multi"),
        ("endo", "exo"),
        ("as", "des"),
        ("a", "de"),
        ("on", "off"),
        ("fore", "back"),
        ("under", "super"),
        ("pro", "anti"),
        ("pro", "con"),
    ),
    particles=particle_verbs(
        """
        turn: turn turns turned turning / on off up down
        switch: switch switches switched switching / on off
        power: power powers powered powering / on off up down
        log: log logs logged logging / in on out off
        sign: sign signs signed signing / in up out off
        check: check checks checked checking / in out
        opt: opt opts opted opting / in out
        clock: clock clocked clocking / in out
        zoom: zoom zooms zoomed zooming / in out
        scale: scale scales scaled scaling / up down in out
        roll: roll rolls rolled rolling / out back
        """
    ),
    directions=words(
        "to into onto from over than with for by before after under above below behind of as in on at against"
    ),
    roles=(words("from off"), words("to into onto towards toward")),
    joiners=words("and or vs versus & / , between nor"),
    numerals={
        **numerals(
            "zero XX-one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
            "sixteen seventeen eighteen nineteen"
        ),
        **numerals("twenty thirty forty|fourty fifty sixty seventy eighty ninety", 20, 10),
        "dozen": 12,
    },
    scales={
        "hundred": 100,
        "thousand": 1000,
        "k": 1000,
        "lakh": 100_000,
        "million": 1_000_000,
        "crore": 10_000_000,
        "billion": 1_000_000_000,
        "trillion": 1_000_000_000_000,
    },
    ordinals=numerals("first second third fourth fifth sixth seventh eighth ninth tenth", 1),
    units=table(
        """
        s: second seconds sec secs
        min: minute minutes mins
        h: hour hours hr hrs
        day: day days
        week: week weeks wk wks
        month: month months
        year: year years yr yrs
        decade: decade decades
        century: century centuries
        usd: dollar dollars usd bucks
        eur: euro euros eur
        gbp: gbp sterling quid
        pound: pound pounds lb lbs
        cent: cent cents
        inr: rupee rupees inr rs
        jpy: yen jpy
        cny: yuan rmb cny
        chf: franc francs chf
        m: meter meters metre metres
        km: kilometer kilometers kilometre kilometres
        cm: centimeter centimeters centimetre centimetres
        mile: mile miles mi
        ft: foot feet ft
        inch: inch inches
        yard: yard yards yd
        kg: kilogram kilograms kilo kilos
        g: gram grams
        mg: milligram milligrams
        ug: microgram micrograms mcg
        oz: ounce ounces
        ton: ton tons tonne tonnes
        l: liter liters litre litres
        ml: milliliter milliliters millilitre millilitres
        gal: gallon gallons
        cup: cup cups
        tbsp: tablespoon tablespoons
        tsp: teaspoon teaspoons
        b: byte bytes
        bit: bit bits
        kb: kilobyte kilobytes
        mb: megabyte megabytes megs
        gb: gigabyte gigabytes gig gigs
        tb: terabyte terabytes
        pb: petabyte petabytes
        w: watt watts
        kw: kilowatt kilowatts
        v: volt volts
        a: amp amps ampere amperes
        hz: hertz
        c: celsius centigrade
        f: fahrenheit
        k: kelvin
        °: degree degrees
        %: percent pct
        x: times fold
        """
    ),
    dates=table(
        """
        m1: january jan
        m2: february feb
        m3: march
        m4: april apr
        m5: may
        m6: june jun
        m7: july jul
        m8: august aug
        m9: september sept
        m10: october oct
        m11: november nov
        m12: december dec
        d1: monday mondays
        d2: tuesday tuesdays
        d3: wednesday wednesdays
        d4: thursday thursdays
        d5: friday fridays
        d6: saturday saturdays
        d7: sunday sundays
        weekend: weekend weekends
        today: today
        tonight: tonight
        tomorrow: tomorrow
        yesterday: yesterday
        """
    ),
    ambiguous_dates=words("may march august"),
    quiet_letters=words("a i s u"),
    decimal_comma=False,
)
