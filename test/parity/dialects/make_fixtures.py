"""What Python's transformers renders and tokenizes, as fixtures for the unit tests of chat templates.

    python -m venv VENV && VENV/bin/pip install -r test/parity/dialects/requirements.txt
    VENV/bin/python test/parity/dialects/make_fixtures.py

The templates are our own; the tokenizers are trained here, on nothing but what the templates render.
"""

import datetime
import json
import pathlib

import transformers.utils.chat_template_utils as chat_template_utils
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

HERE = pathlib.Path(__file__).parent
OUT = HERE.parent.parent / "fixtures" / "dialects"
DATE = "2025-03-04"


class FixedDate(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromisoformat(DATE)


chat_template_utils.datetime = FixedDate

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN_SPLIT = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + TAIL
LLAMA_SPLIT = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}" + TAIL

FAMILIES = {
    "qwen": {
        "split": QWEN_SPLIT,
        "special": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        "plain": ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"],
        "named": {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"},
        "templates": ["qwen2.5-like", "qwen3-like", "features"],
    },
    "llama": {
        "split": LLAMA_SPLIT,
        "special": [
            "<|begin_of_text|>",
            "<|end_of_text|>",
            "<|start_header_id|>",
            "<|end_header_id|>",
            "<|eom_id|>",
            "<|eot_id|>",
            "<|python_tag|>",
        ],
        "plain": [],
        "named": {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
        "templates": ["llama3.1-like", "llama3.2-like"],
    },
    "pythonic": {
        "split": LLAMA_SPLIT,
        "special": [
            "<|begin_of_text|>",
            "<|start_header_id|>",
            "<|end_header_id|>",
            "<|eot_id|>",
            "<|python_start|>",
            "<|python_end|>",
        ],
        "plain": [],
        "named": {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
        "templates": ["pythonic-like"],
    },
    "deepseek": {
        "split": LLAMA_SPLIT,
        "special": ["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"],
        "plain": [
            "<｜User｜>",
            "<｜Assistant｜>",
            "<think>",
            "</think>",
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁calls▁end｜>",
            "<｜tool▁call▁begin｜>",
            "<｜tool▁call▁end｜>",
            "<｜tool▁sep｜>",
            "<｜tool▁outputs▁begin｜>",
            "<｜tool▁outputs▁end｜>",
            "<｜tool▁output▁begin｜>",
            "<｜tool▁output▁end｜>",
        ],
        "named": {"bos_token": "<｜begin▁of▁sentence｜>", "eos_token": "<｜end▁of▁sentence｜>"},
        "templates": ["deepseek-r1-like", "deepseek-v3.1-like"],
    },
    "mistral": {
        "split": LLAMA_SPLIT,
        "special": [
            "<s>",
            "</s>",
            "[INST]",
            "[/INST]",
            "[AVAILABLE_TOOLS]",
            "[/AVAILABLE_TOOLS]",
            "[TOOL_RESULTS]",
            "[/TOOL_RESULTS]",
            "[TOOL_CALLS]",
            "[ARGS]",
            "[CALL_ID]",
            "[SYSTEM_PROMPT]",
            "[/SYSTEM_PROMPT]",
        ],
        "plain": [],
        "named": {"bos_token": "<s>", "eos_token": "</s>"},
        "templates": ["mistral-like", "mistral-args-like"],
    },
}

CALCULATOR = {
    "type": "function",
    "function": {
        "name": "calculator",
        "description": "Does one exact operation on two whole numbers, like 12+7.",
        "parameters": {
            "type": "object",
            "properties": {"expression": {"type": "string", "description": "Like 12+7, <b>\"quoted\"</b> & 'so' – é 🦀"}},
            "required": ["expression"],
            "additionalProperties": False,
        },
    },
}
NESTED = {
    "type": "function",
    "function": {
        "name": "plan_trip",
        "description": "Plans.\nIn two lines, with a tab\there and a backslash \\.",
        "parameters": {
            "type": "object",
            "properties": {
                "stops": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "properties": {
                            "place": {"type": "string", "enum": ["Zürich", "東京", "São Paulo"]},
                            "nights": {"type": "integer", "default": 2, "maximum": 9007199254740991},
                            "budget": {"anyOf": [{"type": "number", "exclusiveMinimum": 0.5}, {"type": "null"}]},
                            "fee": {"type": "number", "default": 1e-07, "maximum": 1.25e22},
                        },
                        "required": ["place"],
                    },
                },
                "options": {"type": "object", "properties": {}, "additionalProperties": {"type": "boolean"}},
            },
            "required": ["stops"],
        },
    },
}
NOTHING = {"type": "function", "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}}}

TEXTS = {
    "plain": "What is 12+7?",
    "spaces": "  \t leading and trailing \n\n ",
    "lines": "one\ntwo\r\nthree\n\n\nfour   five",
    "unicode": "Größe, naïve café, Ελληνικά, русский, العربية, हिन्दी, 中文，日本語, 한국어",
    "emoji": "👩‍👩‍👧‍👦 🦀🏳️‍🌈 flags 🇨🇭🇯🇵 and ☃️",
    "decomposed": "cafe\u0301 A\u030angstro\u0308m \ufb01 \u2126",
    "odd space": "\u0085\u00a0\u2003\ufeffin between\u200b\u3000\u2028\u001c",
    "bom": "\ufeffmarked\ufeff",
    "json": '{"a": [1, 2.5, null, true], "b": "\\"x\\"", "<tag>": "&amp;"}',
    "markup": "<b>bold</b> & <i>'quoted'</i> {{ not jinja }} {% nor this %} {# nor this #}",
    "numbers": "1234567 3.14159 1e-9 0x1F ½ ٣٤ 1,000,000",
    "quotes": "it's I'LL we'Ve don't ''s 'Twas",
    "code": "def f(x):\n    return {\n\t'a': x,\n    }\n```python\nprint(1)\n```",
    "empty": "",
    "controls": "bell \u0007 null-ish \u0001 delete \u007f",
}


def call(name, arguments, text=""):
    return {"role": "assistant", "content": text, "tool_calls": [{"type": "function", "function": {"name": name, "arguments": arguments}}]}


def conversations():
    """(name, messages) of every kind of conversation."""
    for name, text in TEXTS.items():
        yield name, [{"role": "user", "content": text}]
        yield f"{name}, tool", [
            {"role": "user", "content": "Look."},
            call("calculator", {"expression": text}),
            {"role": "tool", "content": text},
        ]
    yield "system", [{"role": "system", "content": " Be brief.\n"}, {"role": "user", "content": "Hi"}]
    yield "two questions", [
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "1"},
        {"role": "user", "content": "Two?"},
    ]
    yield "thoughts", [
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "<think>\nwell\n</think>\n\n1"},
        {"role": "user", "content": "Two?"},
        {"role": "assistant", "content": "<think>\n\nlet me see\n\n</think>\n\n2 "},
    ]
    yield "reasoning content", [
        {"role": "user", "content": "12+7*3?"},
        call("calculator", {"expression": "7*3"}) | {"reasoning_content": "\nfirst the product\n"},
        {"role": "tool", "content": "21"},
        call("calculator", {"expression": "12+21"}, "Now the sum.") | {"reasoning_content": "then the sum"},
        {"role": "tool", "content": "33"},
        {"role": "assistant", "content": "33"},
    ]
    yield "nested arguments", [
        {"role": "user", "content": "Plan."},
        call("plan_trip", {"stops": [{"place": "東京", "nights": 3, "budget": 99.5, "fee": 1.5e-07}, {"place": "x\"y\\z\n"}], "options": {}, "none": None, "yes": True, "list": []}),
        {"role": "tool", "content": '{"ok": true}'},
    ]
    yield "two results", [
        {"role": "user", "content": "Both."},
        {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": "now", "arguments": {}}}, {"type": "function", "function": {"name": "calculator", "arguments": {"expression": "1+1"}}}]},
        {"role": "tool", "content": "noon"},
        {"role": "tool", "content": "2"},
    ]


def with_ids(messages):
    """Calls and results with ids, as Mistral's first templates demand them."""
    made, number, waiting = [], 0, []
    for message in messages:
        if calls := message.get("tool_calls"):
            waiting = [f"call{number + i:05}" for i in range(len(calls))]
            number += len(calls)
            message = message | {"tool_calls": [one | {"id": id} for one, id in zip(calls, waiting)]}
        elif message["role"] == "tool":
            message = message | {"tool_call_id": waiting.pop(0)}
        made.append(message)
    return made


def with_text_arguments(messages):
    """As in OpenAI's API, which is what DeepSeek's templates read."""
    text = lambda one: one | {"function": one["function"] | {"arguments": json.dumps(one["function"]["arguments"], ensure_ascii=False)}}
    return [m | {"tool_calls": [text(one) for one in m["tool_calls"]]} if "tool_calls" in m else m for m in messages]


def cases(template):
    for name, messages in conversations():
        if template.startswith("deepseek"):
            messages = with_text_arguments(messages)
        # What has no ids is refused there.
        if template == "mistral-like" and name not in ("two results", "json, tool"):
            messages = with_ids(messages)
        for tools in (None, [CALCULATOR, NESTED, NOTHING]):
            # The block of tools is long; a few conversations show all of it.
            if tools and name not in ("plain", "unicode, tool", "system", "reasoning content", "nested arguments"):
                continue
            yield {"name": name, "messages": messages, "tools": tools, "add_generation_prompt": True, "variables": {}}
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": " Hello. "}]
    yield {"name": "no generation prompt", "messages": messages, "tools": None, "add_generation_prompt": False, "variables": {}}
    if template == "qwen3-like":
        for thinking in (True, False):
            yield {"name": f"thinking {thinking}", "messages": messages[:1], "tools": [CALCULATOR], "add_generation_prompt": True, "variables": {"enable_thinking": thinking}}
    if template == "llama3.1-like":
        yield {"name": "tools in system", "messages": messages[:1], "tools": [NESTED], "add_generation_prompt": True, "variables": {"tools_in_user_message": False, "date_string": "1 Apr 2025"}}


def render(tokenizer, source, case):
    try:
        return tokenizer.apply_chat_template(
            case["messages"],
            tools=case["tools"],
            chat_template=source,
            add_generation_prompt=case["add_generation_prompt"],
            tokenize=False,
            **case["variables"],
        )
    except Exception as error:  # What a template refuses, ours must refuse too.
        return error


def train(family, corpus):
    tokenizer = Tokenizer(models.BPE(ignore_merges=family is FAMILIES["llama"]))
    if family is FAMILIES["qwen"]:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(family["split"]), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(corpus, trainer)
    tokenizer.add_special_tokens(family["special"])
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in family["plain"]])
    return tokenizer


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for name, family in FAMILIES.items():
        sources = {template: (HERE / "templates" / f"{template}.jinja").read_text() for template in family["templates"]}
        blank = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), **family["named"])
        marks = family["special"] + family["plain"]
        corpus = []
        for template, source in sources.items():
            for case in cases(template):
                text = render(blank, source, case)
                if isinstance(text, str):
                    for mark in marks:
                        text = text.replace(mark, "\n")
                    corpus.append(text)
        backend = train(family, corpus)
        backend.save(str(OUT / f"{name}-tokenizer.json"), pretty=False)
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(OUT / f"{name}-tokenizer.json"), clean_up_tokenization_spaces=False, **family["named"])
        rows = []
        for template, source in sources.items():
            for case in cases(template):
                text = render(tokenizer, source, case)
                tools = {"tools": [t["function"]["name"] for t in case["tools"] or []]}
                row = {"template": template} | case | tools
                if isinstance(text, str):
                    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
                    assert ids == tokenizer.apply_chat_template(
                        case["messages"], tools=case["tools"], chat_template=source,
                        add_generation_prompt=case["add_generation_prompt"], tokenize=True, return_dict=False, **case["variables"],
                    ), row
                    rows.append(row | {"text": text, "ids": ids})
                else:
                    rows.append(row | {"error": str(text)})
        head = {"date": DATE, "named": family["named"], "tools": {t["function"]["name"]: t for t in (CALCULATOR, NESTED, NOTHING)}}
        lines = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
        (OUT / f"{name}-renderings.json").write_text(f'{json.dumps(head, ensure_ascii=False)[:-1]},"cases":[\n{lines}\n]}}\n')
        print(name, len(rows), "cases,", sum("error" in row for row in rows), "refused")


main()
