"""Writes tokenizer/strings.json: awkward strings, one JSON array of text, escaped to ASCII.

usage: python3 strings.py > tokenizer/strings.json
"""

import json

WORDS = [
    "", " ", "  ", "   ", "    ", " " * 7, " " * 16, " " * 33, "\n", "\n\n", "\n\n\n", "\t", "\t\t", "\t\n", " \n", "\n ",
    "\r", "\r\n", "\r\n\r\n", "\n\r", " \t \n \r\n ", "\u00a0", "\u00a0\u00a0", "a\u00a0b", "\u3000", "\u3000全角\u3000空白",
    "\u2003em\u2003space", "\u2028line\u2029paragraph", "\x0b\x0c", "a\x0bb\x0cc", "\x85next line", "\u1680ogham space",
    "Hello", " Hello", "  Hello", "   Hello", "Hello ", "Hello  ", "Hello\n", "\nHello", "\n Hello", "\n  Hello\n  World\n",
    "Hello World", "hello world", "HELLO WORLD", "Hello, World!", " Hello, World!", "Hello   World", "Hello\tWorld",
    "Hello\n\nWorld", "Hello\r\nWorld\r\n", "a", "A", "z z z", "the the the", "Lapwing", "peewit—lapwing", "x" * 3,
    "I'm", "I'll", "I've", "I'd", "you're", "don't", "it's", "IT'S", "I'M SURE", "we'LL", "they'Re", "'s", " 's", "''s", "o'clock",
    "rock 'n' roll", "’s don’t it’s", "'tis the 'season'", "can't've", "y'all'd've", "'", "''", "'''", "\"quoted\"", "“curly” ‘quotes’",
    "0", "1", "12", "123", "1234", "12345", "123456", "1234567", "12345678", "3.14159", "-1", "+1", "1e-10", "0x1F", "1,000,000",
    "1 2 3", "1  2", "50%", "$100", "€9.99", "£1 10s. 4d.", "2024-02-29T23:59:60Z", "192.168.0.1", "٠١٢٣٤٥٦٧٨٩", "१२३४", "４５６７８９", "½ ¾ ⅓",
    "x² + y³ = z⁴", "Ⅷ Ⅻ", "①②③", "a1b2c3", "abc123def456", "123abc", "1st 2nd 3rd", "v1.2.3-rc.4+build.5", "９9٩",
    "!", "!!", "!!!", "?!?!", "...", "…", "....", "-", "--", "---", "—", "=", "==", "===", "====", "=" * 40, "-" * 81, "*" * 65, "#" * 9,
    ".", "..", " .", " ,", ", ", ".\n", "!\n\n", "?)\n", "_", "__", "__init__", "snake_case_name", "camelCaseName", "PascalCase", "kebab-case-name",
    "SCREAMING_SNAKE", "a_b-c.d/e\\f", "C:\\Users\\me\\file.txt", "/usr/local/bin", "https://example.com/a?b=c&d=%20e#f", "user@example.com",
    "@handle #hashtag", "<html>", "</html>", "<br/>", "<a href=\"x\">y</a>", "&amp;&lt;", "[1, 2, 3]", "{\"a\": [1, null]}", "(())[]{}<>",
    "a+b=c", "a += b", "a==b&&c||!d", "x->y", "std::vector<int>", "fn f(x: &mut u8) -> Result<(), E> {", "    return x;\n}\n",
    "def f(x):\n    return x ** 2\n", "\tif (a) {\n\t\tb();\n\t}\n", "for(i=0;i<10;++i){}", "#include <stdio.h>", "// comment\n", "/* c */", "SELECT * FROM t WHERE a='b';",
    "$HOME/.bashrc", "`code`", "```rust\nlet x = 1;\n```", "\\n not a newline", "\\u0041", "%d %s %05.2f", "~!@#$%^&*()_+`-={}|[]\\:\";'<>?,./",
    "   indented\n      more\n\tand tab\n", "trailing   \n   leading", "a \n b", "a  \n\n  b", "x\n\n\n\n\n\n\n\n\n\ny", "\t\t\t\t\tdeep", " \u00a0 mixed \t\u3000",
]

SCRIPTS = [
    "café", "cafe\u0301", "naïve façade", "Ångström A\u030angstro\u0308m", "Straße GROSSE ẞ", "İstanbul ıİ", "œuvre ﬁ ﬂ ﬀ", "Žluťoučký kůň",
    "Tiếng Việt rất đẹp", "Tie\u0302\u0301ng Vie\u0323\u0302t", "Ελληνικά ΕΛΛΗΝΙΚΆ", "ἀρχῇ ἦν ὁ λόγος", "Привет, мир!", "ПРИВЕТ привет ё Ё", "Українська їжа", "Հայերեն լեզու", "ქართული ენა",
    "שלום עולם", "שָׁלוֹם", "مرحبا بالعالم", "السَّلَامُ عَلَيْكُمْ", "فارسی می‌خوانم", "اردو زبان", "ܣܘܪܝܝܐ", "ދިވެހި", "नमस्ते दुनिया", "क्षत्रिय", "বাংলা ভাষা", "ਪੰਜਾਬੀ", "ગુજરાતી", "ଓଡ଼ିଆ",
    "தமிழ் மொழி", "తెలుగు", "ಕನ್ನಡ", "മലയാളം", "සිංහල", "ภาษาไทยไม่มีช่องว่าง", "ພາສາລາວ", "မြန်မာဘာသာ", "ភាសាខ្មែរ", "བོད་སྐད།", "አማርኛ", "ᏣᎳᎩ", "ᐃᓄᒃᑎᑐᑦ", "ᠮᠣᠩᠭᠣᠯ", "ⵜⴰⵎⴰⵣⵉⵖⵜ",
    "你好，世界！", "繁體中文測試", "今天天气真好。", "中文English混合123", "日本語のテキスト", "カタカナ ひらがな 漢字", "ｶﾀｶﾅ", "한국어 텍스트", "한글 자모", "ㄅㄆㄇㄈ", "ＦＵＬＬｗｉｄｔｈ", "𠀀𠀁𠀂", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢", "𝟘𝟙𝟚", "𐍈𐌰𐌽", "𒀀𒀁", "𓀀𓁐",
    "שלום hello مرحبا", "\u202eright to left\u202c", "\u200fabc\u200e", "\u2067אבג\u2069 def", "a\u0300\u0301\u0302\u0303\u0304", "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L", "\u0301", " \u0301", "\u0301a", "e\u200d\u0301",
    "ß", "ſ", "ǅ", "ʻokina Hawaiʻi", "ªº", "µ μ", "K K", "ℵ₀ ∑∫√∞≈≠≤", "← ↑ → ↓ ⇒", "─│┌┐└┘├┤", "█▓▒░", "♠♥♦♣ ♪♫", "℃ № ™ © ®", "⠓⠑⠇⠇⠕", "🂡🀄",
]

EMOJI = [
    "😀", "😀😀", " 😀", "😀 ", "😀a😀", "❤", "❤️", "☺️", "👍🏽", "👩🏿‍🚀", "👨‍👩‍👧‍👦", "👩‍❤️‍💋‍👨", "🏳️‍🌈", "🏴‍☠️", "🇫🇷", "🇫🇷🇩🇪🇯🇵", "🇫", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "1️⃣", "#️⃣", "🧑‍💻 codes 🦀", "🫠🫨", "🚀 (normal) 😶‍🌫️ (multiple emojis concatenated) ✅",
    "I ❤️ 🍕!!!", "ok👌ok", "🤷‍♂️", "🦜🪶", "😮‍💨\n😵‍💫",
]

ODD = [
    "\x00", "a\x00b", "\x00\x00\x00", "\x01\x02\x03", "\x07bell\x08", "\x1b[31mred\x1b[0m", "\x7f", "\x80\x9f", "\u00ad", "soft\u00adhyphen", "\u200b", "zero\u200bwidth", "\u200c\u200d", "\ufeff", "\ufeffBOM first", "mid\ufeffdle", "\u2060word\u2060joiner",
    "\ufffd", "\ufffd\ufffd", "a\ufffdb", "\ue000\uf8ff", "\U000f0000\U0010fffd", "\uffff", "\ufffe", "\U0001ffff", "\U0010ffff", "\ufdd0", "\u0378 unassigned", "\U000e0001\U000e0041", "\ufe0f", "\ufe0e\ufe0f", "\u034f", "\u115f\u1160", "\u3164",
    "▁", "▁▁", "▁Hello", "Hello▁World", " ▁ ", "Ġ", "ĠHello", "Ċ", "Ġ Ġ", "ĉ", "<0x0A>", "<0x41>", "<0xFF>", "##ing", "@@", "<unk>", "[UNK]", "[CLS]", "<pad>", "<mask>",
]

SPECIAL = [
    "<s>", "</s>", "<s>Hello</s>", " <s> ", "<s><s>", "<|endoftext|>", "a<|endoftext|>b", " <|endoftext|> ", "<|im_start|>", "<|im_end|>", "<|im_start|>user\nHi<|im_end|>\n", "<|im_start|> <|im_end|>", "<|im_start", "|im_end|>", "< |im_end| >", "<|IM_END|>", "<<|im_end|>>",
    "<|im_start|><|im_start|>", "<bos>", "<eos>", "<bos>Hello<eos>", "<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n", "<start_of_turn> model", "<end_of_turn><end_of_turn>", "<start_of_image>", "<unused0>", "<unused99> x", "[multimodal]", "<mask> <pad> <unk>",
    "<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|start_header_id|>system<|end_header_id|>\n\nYou are.<|eot_id|>", "<|reserved_special_token_0|>", "<|finetune_right_pad_id|>", "<|system|>\nS<|end|>\n<|user|>\nU<|end|>\n<|assistant|>\n", "<|placeholder1|>  x", "<|end|> \n x", "<|user|>   hi", "  <|assistant|>  \n\n y",
    "<｜begin▁of▁sentence｜>x<｜end▁of▁sentence｜>", "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>", "<fim_prefix>a<fim_suffix>b<fim_middle>", "<repo_name>r<file_sep>f", "<jupyter_start>", "<issue_start>", "<empty_output>", "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>x<|END_OF_TURN_TOKEN|>", "<BOS_TOKEN>", "<EOS_TOKEN>", ">>TITLE<<", ">>ABSTRACT<<x", ">>SUFFIX<<",
    "[INST] hi [/INST]", "<<SYS>>\nx\n<</SYS>>", "<|vision_start|>", "<tool_call>\n{}\n</tool_call>", "<think>\nhm\n</think>", "x</s>y</s> z", "<h1>", "<table>", "</table><td>", "\n\n<h2>x</h2>", "<|im_end|>\n", "\n<|im_end|>", " <|im_end|>", "  <end_of_turn>\n\n",
]

LONG = [
    "a" * 100, "a" * 300, "ab" * 100, "A" * 77, "0" * 64, "9" * 101, " " * 129, "\n" * 70, "\t" * 40, " \n" * 40, "." * 200, "!?" * 60, "é" * 60, "中" * 60, "😀" * 33, "\u0301" * 30, "\u200b" * 20, "ا" * 50, "ก" * 50, "가" * 40, "na" * 120 + " batman", "x " * 80, "_" * 64, "/" * 64, "#" * 128, "\\" * 30,
    "supercalifragilisticexpialidocious" * 4, "Donaudampfschifffahrtsgesellschaftskapitän", "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch", "pneumonoultramicroscopicsilicovolcanoconiosis", "ACGT" * 40, "deadbeef" * 16, "QmFzZTY0IHRleHQgaXMgb2RkIQ==" * 3,
    "The quick brown fox jumps over the lazy dog. " * 5, "Sphinx of black quartz, judge my vow! " * 3, "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. " * 2, "いろはにほへと ちりぬるを わかよたれそ つねならむ", "Съешь же ещё этих мягких французских булок, да выпей чаю.", "Le cœur déçu mais l'âme plutôt naïve, Louÿs rêva de crapaüter en canoë au delà des îles.",
    "\n".join(f"{i}.\t{'-' * i} {i * i}" for i in range(12)), "mixed: Ünïcödé 中文 العربية 😀 \t tab \n newline \u00a0 nbsp \u200b zwsp \x00 nul <s> 12345 it's end   ",
]


def main() -> None:
    """Prints the strings, one to a line, without repeats."""
    strings = list(dict.fromkeys(WORDS + SCRIPTS + EMOJI + ODD + SPECIAL + LONG))
    lines = ",\n".join(json.dumps(text) for text in strings)
    print(f"[\n{lines}\n]")


main()
