//! Styles of elements.

use super::super::{Elements, Form, Style, Turn};
use super::{LINES, NO_LINES};

/// Elements named by an attribute, below a prefix of all names.
macro_rules! invocations {
    ($prefix:literal, $attributes:expr) => {
        Form::Elements(Elements {
            begin: concat!("<", $prefix, "invoke name=\""),
            name_end: "\">\n",
            number: None,
            key: concat!("<", $prefix, "parameter name=\""),
            key_end: "\"",
            attributes: $attributes,
            value: ">",
            value_end: concat!("</", $prefix, "parameter>\n"),
            end: concat!("</", $prefix, "invoke>"),
            quotes: None,
        })
    };
}

/// Functions and parameters as elements that are named after a sign of equality.
const fn equations(value: &'static str, value_end: &'static str) -> Form {
    Form::Elements(Elements {
        begin: "<function=",
        name_end: ">\n",
        number: None,
        key: "<parameter=",
        key_end: ">",
        attributes: ["", ""],
        value,
        value_end,
        end: "</function>",
        quotes: None,
    })
}

/// Keys and values as elements of their own.
const fn pairs(line: &'static str, value: &'static str, value_end: &'static str) -> Form {
    Form::Elements(Elements {
        begin: "",
        name_end: line,
        number: None,
        key: "<arg_key>",
        key_end: "</arg_key>",
        attributes: ["", ""],
        value,
        value_end,
        end: "",
        quotes: None,
    })
}

/// DeepSeek V3.2.
pub(super) static DEEPSEEK_V3_2: Style = Style {
    name: "deepseek-v3.2",
    signs: &[&["｜DSML｜", "function_calls>"]],
    open: &["<｜DSML｜function_calls>"],
    close: "</｜DSML｜function_calls>",
    around: LINES,
    form: invocations!("｜DSML｜", [" string=\"true\"", " string=\"false\""]),
    turn: None,
};

/// DeepSeek V4.
pub(super) static DEEPSEEK_V4: Style = Style {
    name: "deepseek-v4",
    signs: &[&["｜DSML｜", "tool_calls>"]],
    open: &["<｜DSML｜tool_calls>"],
    close: "</｜DSML｜tool_calls>",
    around: LINES,
    form: invocations!("｜DSML｜", [" string=\"true\"", " string=\"false\""]),
    turn: None,
};

/// Seed-OSS.
pub(super) static SEED_OSS: Style = Style {
    name: "seed-oss",
    signs: &[&["<seed:tool_call>"]],
    open: &["<seed:tool_call>"],
    close: "</seed:tool_call>",
    around: LINES,
    form: equations("", "</parameter>\n"),
    turn: None,
};

/// MiniMax M2.
pub(super) static MINIMAX_M2: Style = Style {
    name: "minimax-m2",
    signs: &[&["<minimax:tool_call>"]],
    open: &["<minimax:tool_call>"],
    close: "</minimax:tool_call>",
    around: LINES,
    form: invocations!("", ["", ""]),
    turn: None,
};

/// Kimi K3.
pub(super) static KIMI_K3: Style = Style {
    name: "kimi-k3",
    signs: &[&["<|open|>", "<|close|>", "<|end_of_msg|>"]],
    open: &["<|open|>tools<|sep|>"],
    close: "<|close|>tools<|sep|>",
    around: NO_LINES,
    form: Form::Elements(Elements {
        begin: "<|open|>call tool=\"",
        name_end: "\"",
        number: Some([" index=\"", "\"<|sep|>"]),
        key: "<|open|>argument key=\"",
        key_end: "\"",
        attributes: [" type=\"string\"", " type=\"{}\""],
        value: "<|sep|>",
        value_end: "<|close|>argument<|sep|>",
        end: "<|close|>call<|sep|>",
        quotes: None,
    }),
    turn: Some(Turn {
        start: "",
        text: ["<|open|>response<|sep|>", "<|close|>response<|sep|>"],
        end: "<|close|>message<|sep|>",
        is_begun: false,
    }),
};

/// Muse.
pub(super) static ATEM: Style = Style {
    name: "atem",
    signs: &[&["<atem:function_calls>"]],
    open: &["<atem:function_calls>"],
    close: "</atem:function_calls>",
    around: LINES,
    form: invocations!("atem:", ["", ""]),
    turn: None,
};

/// Hunyuan 3.
pub(super) static HUNYUAN3: Style = Style {
    name: "hunyuan3",
    signs: &[&["<tool_sep{}>", ":opensource"]],
    open: &["<tool_calls:opensource>"],
    close: "</tool_calls:opensource>",
    around: LINES,
    form: Form::Elements(Elements {
        begin: "<tool_call:opensource>",
        name_end: "<tool_sep:opensource>\n",
        number: None,
        key: "<arg_key:opensource>",
        key_end: "</arg_key:opensource>",
        attributes: ["", ""],
        value: "\n<arg_value:opensource>",
        value_end: "</arg_value:opensource>\n",
        end: "</tool_call:opensource>",
        quotes: None,
    }),
    turn: None,
};

/// MiniCPM 5.
pub(super) static MINICPM5: Style = Style {
    name: "minicpm5",
    signs: &[&["<function name=\""]],
    open: &["<function "],
    close: "</function>",
    around: NO_LINES,
    form: Form::Elements(Elements {
        begin: "name=\"",
        name_end: "\">",
        number: None,
        key: "<param name=\"",
        key_end: "\"",
        attributes: ["", ""],
        value: ">",
        value_end: "</param>",
        end: "",
        quotes: Some(["<![CDATA[", "]]>"]),
    }),
    turn: None,
};

/// GLM 4.7.
pub(super) static GLM_4_7: Style = Style {
    name: "glm-4.7",
    signs: &[&["{function-name}<arg_key>"]],
    open: &["<tool_call>"],
    close: "</tool_call>",
    around: NO_LINES,
    form: pairs("", "<arg_value>", "</arg_value>"),
    turn: None,
};

/// GLM 4.5 and 4.6, Ling, Laguna.
pub(super) static GLM_4_5: Style = Style {
    name: "glm-4.5",
    signs: &[&["<tool_call>", "<arg_key>"]],
    open: &["<tool_call>"],
    close: "</tool_call>",
    around: NO_LINES,
    form: pairs("\n", "\n<arg_value>", "</arg_value>\n"),
    turn: None,
};

/// Qwen3-Coder, Qwen3.5, Nemotron 3.
pub(super) static QWEN3_CODER: Style = Style {
    name: "qwen3-coder",
    signs: &[&["<tool_call>", "<function="]],
    open: &["<tool_call>"],
    close: "</tool_call>",
    around: LINES,
    form: equations("\n", "\n</parameter>\n"),
    turn: None,
};
