//! The names of Unicode classes that `\p{…}` knows: categories, their long names, and scripts.
//!
//! Case, spaces, hyphens and underscores in a name do not count. Go `unicodeTable`, Unicode 17.

/// Names of Unicode categories that Go knows in `\p{…}`, and `Any`, `Assigned` and `ASCII`.
const CATEGORIES: &str = "any ascii assigned c cc cf cn co cs l lc ll lm lo lt lu m mc me mn n nd nl no p pc pd pe pf pi po ps \
     s sc sk sm so z zl zp zs";

/// Long names of Unicode categories, such as `Letter`.
const CATEGORY_ALIASES: &str = "casedletter closepunctuation cntrl combiningmark connectorpunctuation control currencysymbol \
     dashpunctuation decimalnumber digit enclosingmark finalpunctuation format initialpunctuation letter \
     letternumber lineseparator lowercaseletter mark mathsymbol modifierletter modifiersymbol \
     nonspacingmark number openpunctuation other otherletter othernumber otherpunctuation othersymbol \
     paragraphseparator privateuse punct punctuation separator spaceseparator spacingmark surrogate \
     symbol titlecaseletter unassigned uppercaseletter";

/// Names of the Unicode scripts.
const SCRIPTS: &str = "adlam ahom anatolianhieroglyphs arabic armenian avestan balinese bamum bassavah batak bengali \
     beriaerfe bhaiksuki bopomofo brahmi braille buginese buhid canadianaboriginal carian \
     caucasianalbanian chakma cham cherokee chorasmian common coptic cuneiform cypriot cyprominoan \
     cyrillic deseret devanagari divesakuru dogra duployan egyptianhieroglyphs elbasan elymaic ethiopic \
     garay georgian glagolitic gothic grantha greek gujarati gunjalagondi gurmukhi gurungkhema han hangul \
     hanifirohingya hanunoo hatran hebrew hiragana imperialaramaic inherited inscriptionalpahlavi \
     inscriptionalparthian javanese kaithi kannada katakana kawi kayahli kharoshthi khitansmallscript \
     khmer khojki khudawadi kiratrai lao latin lepcha limbu lineara linearb lisu lycian lydian mahajani \
     makasar malayalam mandaic manichaean marchen masaramgondi medefaidrin meeteimayek mendekikakui \
     meroiticcursive meroitichieroglyphs miao modi mongolian mro multani myanmar nabataean nagmundari \
     nandinagari newa newtailue nko nushu nyiakengpuachuehmong ogham olchiki oldhungarian olditalic \
     oldnortharabian oldpermic oldpersian oldsogdian oldsoutharabian oldturkic olduyghur olonal oriya \
     osage osmanya pahawhhmong palmyrene paucinhau phagspa phoenician psalterpahlavi rejang runic \
     samaritan saurashtra sharada shavian siddham sidetic signwriting sinhala sogdian sorasompeng soyombo \
     sundanese sunuwar sylotinagri syriac tagalog tagbanwa taile taitham taiviet taiyo takri tamil tangsa \
     tangut telugu thaana thai tibetan tifinagh tirhuta todhri tolongsiki toto tulutigalari ugaritic vai \
     vithkuqi wancho warangciti yezidi yi zanabazarsquare";

/// True if Go knows a Unicode class with this name.
pub(super) fn is_unicode_class(name: &str) -> bool {
    let plain: String =
        name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).map(|c| c.to_ascii_lowercase()).collect();
    [CATEGORIES, CATEGORY_ALIASES, SCRIPTS].iter().any(|names| names.split(' ').any(|known| known == plain))
        && !plain.is_empty()
}
