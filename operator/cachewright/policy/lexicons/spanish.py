"""Spanish, for the guard. Pure data; read by `lexicons`."""

from __future__ import annotations

from typing import Final

from cachewright.policy.lexicons.lexicon import Lexicon, alternatives, numerals, table, words

SPANISH: Final = Lexicon(
    language="es",
    function_words=words(
        """
        el la los las un una unos unas lo al del de este esta estos estas ese esa eso esto aquel mi mis tu tus su sus
        nuestro nuestra yo me mí tú te ti él ella usted nosotros ellos ellas se le les nos
        que qué quien quién cual cuál cuáles cuando cuándo donde dónde adónde como cómo cuanto cuánto cuánta cuántos
        cuántas por porque para
        soy eres es somos son era eran fue será ser sido estoy está están estar estaba he has ha hemos han había haber
        hay tengo tiene tienen tener puedo puede puedes pueden poder podría debo debe debería deben hago hace hacer
        quiero quisiera
        y e o u pero ni si pues aunque mientras
        a ante bajo con contra desde en entre hacia hasta según sin sobre tras durante antes después
        no nunca jamás nada nadie ningún ninguna ninguno muy más menos también tampoco ya todavía aún aquí allí todo
        toda todos todas otro otra mismo misma algo alguien algún alguna
        """
    ),
    telling_words=words(
        """
        restablecer cambiar cancelar eliminar borrar activar desactivar instalar desinstalar abrir cerrar comprar
        vender pagar funciona contraseña cuenta factura pedido envío precio cuesta días horas semanas meses años
        diferencia significa ayuda error dirección cliente devolución reembolso efectos secundarios
        """
    ),
    negations=words("no nunca jamás nada nadie ningún ninguna ninguno ni sin tampoco"),
    restrictions=words("solo sólo solamente únicamente exclusivamente"),
    mild_restrictions=words("único única simplemente"),
    idle_phrases=(("o", "no"), ("no", "solo"), ("no", "sólo")),
    opposites=alternatives(
        """
        activ* habilit* permit* encend* enciend* desbloque* / desactiv* deshabilit* prohib* prohíb* apag* bloque*
        legal* permitid* / ilegal* prohibid*
        conect* / desconect*
        inici* empez* empiez* comenz* comienz* arranc* / termin* deten* finaliz* acab*
        iniciar_sesión inicio_sesión / cerrar_sesión cierro_sesión
        abr* abiert* / cerr* cierr*
        suscrib* inscrib* alta / desuscrib* cancel* baja
        aument* subir sube suben incrementa* / disminu* reduc* bajar baja bajan
        máxim* / mínim*
        antes / después
        temprano / tarde
        primer* / últim*
        próxim* siguiente* / últim* anterior* pasad*
        viej* antigu* / nuev* joven* reciente*
        añad* agreg* insert* / elimin* borr* quit*
        instal* / desinstal*
        mont* / desmont*
        cre* / elimin* destru*
        carg* subir / descarg* bajar
        import* / export*
        cifr* encript* / descifr* desencript*
        comprim* / descomprim*
        envi* enví* mand* / recib*
        compr* / vend* venta* / alquil*
        comprador* cliente* / vendedor*
        propietari* arrendador* / inquilin* arrendatari*
        empleador* / emplead*
        deposit* ingres* / retir*
        ingreso* ganancia* / gasto* pérdida*
        brut* / net*
        entrada* entrante* / salida* saliente*
        acept* aprob* aprueb* / rechaz*
        con / sin
        sí / no
        verdader* / fals*
        correct* válid* / incorrect* inválid*
        segur* / peligros* insegur* dañin*
        buen* mejor* / mal* peor*
        ventaja* / desventaja* inconveniente*
        fácil* sencill* / difícil* complicad*
        rápid* / lent*
        grand* mayor* / pequeñ* menor*
        larg* alarg* / cort* acort*
        alt* / baj*
        caliente* calor / frí*
        barat* / car* caro cara
        gratis gratuit* / pago pagad* de_pago
        públic* / privad*
        intern* interior* / extern* exterior*
        arriba superior* / abajo inferior*
        izquierd* / derech*
        norte / sur / este_de oriente / oeste
        fila* / columna*
        positiv* / negativ*
        siempre / nunca jamás / veces
        temporal* / permanente*
        manual* / automátic*
        leer leo lee leído / escrib*
        hombre* masculin* niño niños chico* / mujer* femenin* niña niñas chica*
        hijo hijos / hija hijas
        hermano hermanos / hermana hermanas
        padre papá / madre mamá
        marido esposo / esposa
        bebé* niño niños niña niñas / adult*
        perro* / gato*
        médico* / paciente*
        agud* / crónic*
        día diurn* / noche* nocturn*
        mañana / mediodía / tarde / noche
        diari* / semanal* / mensual* / anual*
        primavera / verano / otoño / invierno
        rojo* roja* / verde* / azul* / amarill* / negro* negra* / blanc*
        cuándo cuando / dónde donde / quién quien / cuánto cuánta cuántos cuántas
        es son soy está están / era eran fue estaba / será serán
        tod* cada / algun* vari* / solo sólo solamente únicamente
        alguien / nadie
        ida / vuelta
        inclu* / exclu* salvo excepto
        obligatori* / opcional* voluntari*
        más / menos
        """
    ),
    prefixes=(
        ("", "in"),
        ("", "im"),
        ("", "i"),
        ("", "ir"),
        ("", "des"),
        ("", "dis"),
        ("", "anti"),
        ("im", "ex"),
        ("sobre", "sub"),
        ("pre", "post"),
        ("hiper", "hipo"),
        ("mono", "poli"),
        ("macro", "micro"),
        ("en", "des"),
    ),
    particles={},
    directions=words("a al hacia en de del por para que sobre bajo contra antes después con desde hasta"),
    roles=(words("desde"), words("hasta hacia")),
    joiners=words("y e o u ni & / , entre"),
    numerals={
        **numerals(
            "cero XX-uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince "
            "dieciséis|dieciseis diecisiete dieciocho diecinueve veinte veintiuno|veintiún veintidós|veintidos "
            "veintitrés|veintitres veinticuatro veinticinco veintiséis|veintiseis veintisiete veintiocho veintinueve"
        ),
        **numerals("treinta cuarenta cincuenta sesenta setenta ochenta noventa", 30, 10),
        "docena": 12,
    },
    scales={
        "cien": 100,
        "ciento": 100,
        "mil": 1000,
        "millón": 1_000_000,
        "millones": 1_000_000,
    },
    ordinals={
        **numerals(
            "primero|primer|primera segundo|segunda tercero|tercer|tercera cuarto|cuarta quinto|quinta", 1
        )
    },
    units=table(
        """
        s: segundos seg
        min: minuto minutos
        h: hora horas
        day: día días
        week: semana semanas
        month: mes meses
        year: año años
        usd: dólar dólares usd
        eur: euro euros eur
        pound: libra libras
        mxn: peso pesos
        m: metro metros
        km: kilómetro kilómetros
        cm: centímetro centímetros
        mile: milla millas
        kg: kilo kilos kilogramo kilogramos
        g: gramo gramos
        mg: miligramo miligramos
        ton: tonelada toneladas
        l: litro litros
        ml: mililitro mililitros
        mb: megabyte megabytes megas
        gb: gigabyte gigabytes gigas
        tb: terabyte terabytes teras
        c: celsius
        °: grado grados
        x: veces
        """
    ),
    dates=table(
        """
        m1: enero
        m2: febrero
        m3: marzo
        m4: abril
        m5: mayo
        m6: junio
        m7: julio
        m8: agosto
        m9: septiembre setiembre
        m10: octubre
        m11: noviembre
        m12: diciembre
        d1: lunes
        d2: martes
        d3: miércoles
        d4: jueves
        d5: viernes
        d6: sábado sábados
        d7: domingo domingos
        today: hoy
        tomorrow: mañana
        yesterday: ayer
        """
    ),
    ambiguous_dates=frozenset(),
    quiet_letters=words("a e i o u y"),
    decimal_comma=True,
)
