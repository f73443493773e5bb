//! A call in every style, as models write it.

/// A text of the style of this name.
pub(super) type Text = (&'static str, &'static str);

/// A call of `weather` for three days in Bern.
pub(super) const ONE: [Text; 40] = [
    (
        "channels",
        "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{\"city\": \"Bern\", \"days\": 3}<|call|>",
    ),
    (
        "channels",
        "<|channel|>commentary<|message|>Hm.<|end|><|start|>assistant to=functions.weather<|channel|>commentary json<|message|>{\"city\": \"Bern\", \"days\": 3}",
    ),
    (
        "channels",
        " to=functions.weather<|channel|>commentary json<|message|>{\"city\": \"Bern\", \"days\": 3}<|call|>",
    ),
    (
        "channels",
        " to=functions.weather<|channel|>commentary <|constrain|> json<|message|>{\"city\": \"Bern\", \"days\": 3}<|end|>",
    ),
    (
        "channels",
        "<|channel|>commentary to=assistant<|channel|>final<|message|>Hm.<|end|><|start|>assistant<|channel|>analysis to=functions.weather<|message|>{\"city\": \"Bern\", \"days\": 3}",
    ),
    (
        "kimi-k3",
        "<|open|>response<|sep|>Hm.<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool=\"weather\" index=\"1\"<|sep|><|open|>argument key=\"city\" type=\"string\"<|sep|>Bern<|close|>argument<|sep|><|open|>argument key=\"days\" type=\"number\"<|sep|>3<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>",
    ),
    (
        "minimax-m3",
        "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"weather\">]<]minimax[>[<city>Bern]<]minimax[>[</city>]<]minimax[>[<days>3]<]minimax[>[</days>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
    ),
    (
        "solar-open",
        "<|tool_calls|><|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>weather<|tool_call:args|>{\"city\": \"Bern\", \"days\": 3}<|tool_call:end|><|calls|>",
    ),
    ("functionary-recipients", "all\nHm.>>>weather\n{\"city\": \"Bern\", \"days\": 3}"),
    ("functionary-recipients", "weather\n{\"city\": \"Bern\", \"days\": 3}"),
    (
        "gigachat3",
        "Hm.<|message_sep|>\n\nfunction call<|role_sep|>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\", \"days\": 3}}<|message_sep|>\n\n",
    ),
    (
        "kimi-k2",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:4<|tool_call_argument_begin|>{\"city\": \"Bern\", \"days\": 3}<|tool_call_end|><|tool_calls_section_end|>",
    ),
    (
        "deepseek-v3.2",
        "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"weather\">\n<｜DSML｜parameter name=\"city\" string=\"true\">Bern</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" string=\"false\">3</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
    ),
    (
        "deepseek-r1",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"city\": \"Bern\", \"days\": 3}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    (
        "deepseek-v3.1",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{\"city\": \"Bern\", \"days\": 3}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    (
        "seed-oss",
        "<seed:tool_call>\n<function=weather>\n<parameter=city>Bern</parameter>\n<parameter=days>3</parameter>\n</function>\n</seed:tool_call>",
    ),
    (
        "minimax-m2",
        "<minimax:tool_call>\n<invoke name=\"weather\">\n<parameter name=\"city\">Bern</parameter>\n<parameter name=\"days\">3</parameter>\n</invoke>\n</minimax:tool_call>",
    ),
    ("gemma4", "<|tool_call>call:weather{city:<|\"|>Bern<|\"|>,days:3}<tool_call|>"),
    (
        "function-gemma",
        "<start_function_call>call:weather{city:<escape>Bern<escape>,days:3}<end_function_call>",
    ),
    (
        "cohere",
        "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"weather\", \"parameters\": {\"city\": \"Bern\", \"days\": 3}}\n]<|END_ACTION|>",
    ),
    (
        "command-r",
        "Action:\n```json\n[\n    {\n        \"tool_name\": \"weather\",\n        \"parameters\": {\n            \"city\": \"Bern\",\n            \"days\": 3\n        }\n    }\n]```",
    ),
    (
        "python-block",
        "<|tool_call_start|>\n```python\nweather(city=\"Bern\", days=3)\n```\n<|tool_call_end|>",
    ),
    ("python", "<|tool_call_start|>[weather(city='Bern', days=3)]<|tool_call_end|>"),
    ("python", "<|tool_call_start|>[weather(\"Bern\", 3)]<|tool_call_end|>"),
    (
        "apertus",
        "<|tools_prefix|>[{\"weather\": {\"city\": \"Bern\", \"days\": 3}}]<|tools_suffix|>",
    ),
    (
        "nemotron",
        "<TOOLCALL>[{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\", \"days\": 3}}]</TOOLCALL>",
    ),
    (
        "hunyuan3",
        "<tool_calls:opensource>\n<tool_call:opensource>weather<tool_sep:opensource>\n<arg_key:opensource>city</arg_key:opensource>\n<arg_value:opensource>Bern</arg_value:opensource>\n<arg_key:opensource>days</arg_key:opensource>\n<arg_value:opensource>3</arg_value:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>",
    ),
    (
        "tagged-list",
        "<tool_calls>\n[{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\", \"days\": 3}}]\n</tool_calls>",
    ),
    ("mistral", "[TOOL_CALLS]weather[ARGS]{\"city\": \"Bern\", \"days\": 3}"),
    ("mistral", "[TOOL_CALLS]weather[CALL_ID]abcdefghi[ARGS]{\"city\": \"Bern\", \"days\": 3}"),
    (
        "mistral-list",
        "[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\", \"days\": 3}, \"id\": \"abcdefghi\"}]",
    ),
    (
        "phi4",
        "<|tool_call|>[{\"type\": \"function\", \"function\": {\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\", \"days\": 3}}}]<|/tool_call|>",
    ),
    (
        "phi4",
        "functools[{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\", \"days\": 3}}]",
    ),
    (
        "granite3",
        "<|tool_call|>[{\"name\": \"weather\", \"arguments\": {\"city\": \"Bern\", \"days\": 3}}]",
    ),
    (
        "minicpm5",
        "<function name=\"weather\"><param name=\"city\"><![CDATA[Bern]]></param><param name=\"days\">3</param></function>",
    ),
    (
        "glm-4.5",
        "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Bern</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
    ),
    (
        "glm-4.7",
        "<tool_call>weather<arg_key>city</arg_key><arg_value>Bern</arg_value><arg_key>days</arg_key><arg_value>3</arg_value></tool_call>",
    ),
    (
        "qwen3-coder",
        "<tool_call>\n<function=weather>\n<parameter=city>\nBern\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>",
    ),
    ("functionary", "<function=weather>{\"city\": \"Bern\", \"days\": 3}</function>"),
    ("glm-4", "weather\n{\"city\": \"Bern\", \"days\": 3}"),
];
