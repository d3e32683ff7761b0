"""Checks the Slack messages and views of a folder with slack_sdk (models and their validators) and slackblocks (builders and their limits).

slack_sdk parses each block and view and validates it; what it gives back must be what we wrote, so that nothing was dropped as unknown.
slackblocks builds each block anew from our values, and its constructors raise at a limit.
A message that breaks a rule on purpose must be refused by both: a check that cannot fail proves nothing.
"""

import glob
import json
import os
import sys

import slackblocks as sb
from slack_sdk.models.blocks import Block
from slack_sdk.models.blocks.block_elements import RichTextElementParts
from slack_sdk.models.views import View


def sdk_block(block):
    parsed = Block.parse(block)
    if parsed is None:
        raise ValueError(f"slack_sdk does not know a block of type {block.get('type')}")
    parsed.validate_json()
    back = parsed.to_dict()
    lost = set(block) - set(back)
    if lost:
        raise ValueError(f"slack_sdk does not know {sorted(lost)} of {block['type']}")


def text(value):
    kind = sb.TextType.MARKDOWN if value["type"] == "mrkdwn" else sb.TextType.PLAINTEXT
    return sb.Text(value["text"], type_=kind, emoji=value.get("emoji", False))


def inline(value):
    style = {name: True for name, on in value.get("style", {}).items() if on}
    match value["type"]:
        case "text":
            return sb.RichText(value["text"], **style)
        case "link":
            return sb.RichTextLink(value["url"], text=value.get("text"), **style)
        case "user":
            return sb.RichTextUser(value["user_id"], **style)
        case "emoji":
            return sb.RichTextEmoji(value["name"])
        case "channel":
            return sb.RichTextChannel(value["channel_id"])
        case "date":
            # slackblocks has none. slack_sdk says what it may hold; what older clients show in its place is text.
            odd = set(value) - RichTextElementParts.Date(timestamp=0, format="").attributes - {"type"}
            if odd or not isinstance(value["timestamp"], int):
                raise ValueError(f"a date with {sorted(value)}")
            return sb.RichText(value["fallback"], **style)
    raise ValueError(f"no builder for the element {value['type']}")


def rich(value):
    elements = value["elements"]
    match value["type"]:
        case "rich_text_section":
            return sb.RichTextSection([inline(one) for one in elements])
        case "rich_text_list":
            return sb.RichTextList(value["style"], [rich(one) for one in elements], indent=value.get("indent", 0), offset=value.get("offset", 0), border=value.get("border", 0))
        case "rich_text_preformatted":
            return sb.RichTextCodeBlock([inline(one) for one in elements], border=value.get("border", 0))
        case "rich_text_quote":
            return sb.RichTextQuote([inline(one) for one in elements], border=value.get("border", 0))
    raise ValueError(f"no builder for {value['type']}")


def confirm(value):
    return sb.ConfirmationDialogue(
        title=text(value["title"]), text=text(value["text"]), confirm=text(value["confirm"]), deny=text(value["deny"])
    )


def boxes(value):
    options = {name: [sb.Option(text(one["text"]), one["value"]) for one in value[name]] for name in ("options", "initial_options")}
    return sb.CheckboxGroup(value["action_id"], **options)


def button(value):
    if value["type"] == "checkboxes":
        return boxes(value)
    asked = confirm(value["confirm"]) if "confirm" in value else None
    return sb.Button(text(value["text"]), action_id=value["action_id"], value=value.get("value"), style=value.get("style"), confirm=asked,
                     accessibility_label=value.get("accessibility_label"))


def cell(value):
    # Slack takes a whole rich_text object as a cell; the builder wants what is inside it.
    return sb.RawText(value["text"]) if value["type"] == "raw_text" else rich(value["elements"][0])


def field(value):
    return sb.PlainTextInput(action_id=value["action_id"], multiline=value.get("multiline", False), max_length=value.get("max_length"),
                             focus_on_load=value.get("focus_on_load", False),
                             placeholder=text(value["placeholder"]) if "placeholder" in value else None)


def task(value):
    details = sb.RichTextBlock([rich(one) for one in value["details"]["elements"]]) if "details" in value else None
    return sb.TaskCardBlock(value["task_id"], value["title"], details=details, status=value["status"])


def thumbs(value):
    one = lambda name: sb.FeedbackButton(text(value[name]["text"]), value[name]["value"])
    return sb.FeedbackButtons(one("positive_button"), one("negative_button"), action_id=value["action_id"])


def built(block):
    ident = {"block_id": block.get("block_id")}
    match block["type"]:
        case "header":
            return sb.HeaderBlock(text(block["text"]), **ident)
        case "section":
            return sb.SectionBlock(text(block["text"]) if "text" in block else None, fields=[text(one) for one in block["fields"]] if "fields" in block else None, **ident)
        case "context":
            return sb.ContextBlock([text(one) for one in block["elements"]], **ident)
        case "actions":
            return sb.ActionsBlock([button(one) for one in block["elements"]], **ident)
        case "divider":
            return sb.DividerBlock(**ident)
        case "rich_text":
            return sb.RichTextBlock([rich(one) for one in block["elements"]], **ident)
        case "markdown":
            return sb.MarkdownBlock(block["text"])
        case "table":
            return sb.TableBlock([[cell(one) for one in row] for row in block["rows"]], **ident)
        case "input":
            return sb.InputBlock(label=text(block["label"]), element=field(block["element"]), hint=text(block["hint"]) if "hint" in block else None, **ident)
        case "plan":
            return sb.PlanBlock(block["title"], [task(one) for one in block["tasks"]], **ident)
        case "context_actions":
            return sb.ContextActionsBlock([thumbs(one) for one in block["elements"]], **ident)
    raise ValueError(f"no builder for a block of type {block['type']}")


def check(card):
    """Raises at the first rule that the message or modal breaks."""
    blocks = card.get("blocks") or []
    for block in blocks:
        sdk_block(block)
    builders = [built(block) for block in blocks]
    if card.get("type") == "modal":
        View(**card).validate_json()
        sb.ModalView(title=text(card["title"]), blocks=builders, close=text(card["close"]), submit=text(card["submit"]),
                     private_metadata=card.get("private_metadata"), callback_id=card.get("callback_id")).to_dict()
    elif card.get("type") == "home":
        View(**card).validate_json()
        sb.HomeTabView(blocks=builders).to_dict()
    else:
        if not card.get("text"):
            raise ValueError("no fallback text")
        sb.Message(channel="C0GENERAL", text=card["text"], blocks=builders or None).to_dict()
    return len(blocks)


def must_fail():
    """Messages that are wrong in one place each."""
    word = {"type": "plain_text", "text": "OK"}
    press = {"type": "button", "action_id": "a", "text": word, "value": "v"}
    yield "button text of 76", {"text": "x", "blocks": [{"type": "actions", "elements": [{**press, "text": {"type": "plain_text", "text": "x" * 76}}]}]}
    yield "button value of 2001", {"text": "x", "blocks": [{"type": "actions", "elements": [{**press, "value": "x" * 2001}]}]}
    yield "header of 151", {"text": "x", "blocks": [{"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}]}
    yield "section of 3001", {"text": "x", "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}]}
    task_card = {"type": "task_card", "task_id": "a", "title": "x", "status": "done"}
    yield "a task with an unknown status", {"text": "x", "blocks": [{"type": "plan", "title": "x", "tasks": [task_card]}]}
    yield "51 blocks", {"text": "x", "blocks": [{"type": "divider"}] * 51}


def main():
    paths = sorted(glob.glob(f"{sys.argv[1]}/*.json"))
    wrong, blocks, cards = [], 0, 0
    for path in paths:
        card = json.load(open(path, encoding="utf-8"))
        name = os.path.basename(path).removesuffix(".json")
        try:
            count = check(card)
            blocks, cards = blocks + count, cards + 1
            print(f"ok    {name} ({count} blocks)")
        except Exception as problem:  # any refusal of theirs is a finding
            wrong.append(name)
            print(f"WRONG {name}: {type(problem).__name__}: {problem}")
    for name, card in must_fail():
        try:
            check(card)
        except Exception:
            print(f"ok    refused as it should be: {name}")
        else:
            wrong.append(name)
            print(f"WRONG not refused: {name}")
    print(f"{cards} messages and views, {blocks} blocks; {len(wrong)} wrong")
    return 1 if wrong or not cards else 0


if __name__ == "__main__":
    sys.exit(main())
