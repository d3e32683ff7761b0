// Draws our Lark cards (Card JSON 2.0) and Slack messages (Block Kit) about as the platforms' clients do. An approximation:
// it knows the components that our cards use, and says so in red where it meets another one.
"use strict";

const el = (tag, cls, ...kids) => {
  const node = document.createElement(tag);
  if (cls) node.className = cls;
  node.append(...kids.filter((kid) => kid !== null && kid !== undefined));
  return node;
};
const unknown = (what) => el("div", "unknown", `not drawn: ${what}`);
const box = (ticked, text) => el("div", "box", `${ticked ? "☑" : "☐"} ${text}`);
const decode = (text) => {
  const box = document.createElement("textarea");
  box.innerHTML = text;
  return box.value;
};

// ---- Markdown, as far as our cards use it: tokens first, so that entities and tags are read once.
function inline(text, platform) {
  const out = [];
  const rules = platform === "lark"
    ? [[/^`([^`\n]+)`/, (m) => el("code", "", decode(m[1]))],
       [/^\*\*(.+?)\*\*/s, (m) => el("b", "", ...inline(m[1], platform))],
       [/^~~(.+?)~~/s, (m) => el("s", "", ...inline(m[1], platform))],
       [/^\*(?![\s*])(.+?)\*/s, (m) => el("i", "", ...inline(m[1], platform))],
       [/^\[([^\]]*)\]\(([^)]*)\)/, (m) => el("a", "", ...inline(m[1], platform))],
       [/^<at id=([^>]*)><\/at>/, (m) => el("span", "at", `@${m[1]}`)],
       [/^<font color='(\w+)'>(.*?)<\/font>/s, (m) => el("span", `font ${m[1]}`, ...inline(m[2], platform))],
       // A client shows its own zone; a picture that is drawn anywhere shows UTC.
       [/^<local_datetime millisecond='(\d+)' format_type='(\w+)'><\/local_datetime>/, (m) => new Date(Number(m[1])).toISOString().slice(...(m[2] === "time" ? [11, 16] : [0, 10]))],
       [/^<text_tag color='(\w+)'>(.*?)<\/text_tag>/s, (m) => el("span", `tag ${m[1]}`, decode(m[2]))]]
    : [[/^`([^`\n]+)`/, (m) => el("code", "", decode(m[1]))],
       [/^\*(?![\s*])([^*\n]+?)\*/, (m) => el("b", "", ...inline(m[1], platform))],
       [/^_(?![\s_])([^_\n]+?)_(?!\w)/, (m) => el("i", "", ...inline(m[1], platform))],
       [/^~([^~\n]+?)~/, (m) => el("s", "", ...inline(m[1], platform))],
       [/^<@(\w+)>/, (m) => el("span", "at", `@${m[1]}`)],
       [/^<!date\^[^|>]*\|([^>]*)>/, (m) => decode(m[1])],
       [/^<(https?:[^|>]+)\|([^>]*)>/, (m) => el("a", "", decode(m[2]))],
       [/^<(https?:[^|>]+)>/, (m) => el("a", "", decode(m[1]))]];
  let rest = text;
  let plain = "";
  const flush = () => { if (plain) out.push(decode(plain)); plain = ""; };
  scan: while (rest) {
    for (const [pattern, make] of rules) {
      const match = pattern.exec(rest);
      if (match) {
        flush();
        out.push(make(match));
        rest = rest.slice(match[0].length);
        continue scan;
      }
    }
    const entity = /^&#?\w+;/.exec(rest);
    const piece = entity ? entity[0] : String.fromCodePoint(rest.codePointAt(0));
    plain += piece;
    rest = rest.slice(piece.length);
  }
  flush();
  return out;
}

function markdown(text, platform) {
  const box = el("div", "md");
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at];
    const fence = /^(\s*)(`{3,}|~{3,})/.exec(line);
    if (fence) {
      const code = [];
      for (at += 1; at < lines.length && !lines[at].trim().startsWith(fence[2]); at += 1) code.push(lines[at]);
      box.append(el("pre", "", code.join("\n")));
      continue;
    }
    const heading = /^(#{1,6}) (.*)/.exec(line);
    const item = /^(\s*)([-*]|\d+\.) (.*)/.exec(line);
    const quote = /^> ?(.*)/.exec(line);
    if (platform === "lark" && line.startsWith("|")) {
      const table = el("table", "");
      for (; at < lines.length && lines[at].startsWith("|"); at += 1) {
        if (/^\|[\s:|-]+\|?$/.test(lines[at])) continue;
        const cells = lines[at].replace(/^\||\|$/g, "").split("|");
        table.append(el("tr", "", ...cells.map((cell) => el("td", "", ...inline(cell.trim(), platform)))));
      }
      at -= 1;
      box.append(table);
    } else if (heading) {
      box.append(el("div", `h h${heading[1].length}`, ...inline(heading[2], platform)));
    } else if (/^\s*(---+|\*\*\*+)\s*$/.test(line)) {
      box.append(el("hr", ""));
    } else if (item) {
      const row = el("div", "item", el("span", "bullet", /\d/.test(item[2]) ? item[2] : "•"), el("span", "", ...inline(item[3], platform)));
      row.style.marginLeft = `${item[1].length * 6}px`;
      box.append(row);
    } else if (quote) {
      box.append(el("blockquote", "", ...inline(quote[1], platform)));
    } else {
      box.append(el("div", "line", ...(line ? inline(line, platform) : ["\u00a0"])));
    }
  }
  return box;
}

// ---- Lark
function larkElement(element) {
  switch (element.tag) {
    case "markdown": {
      const box = markdown(element.content, "lark");
      if (element.text_size === "notation") box.classList.add("small");
      return box;
    }
    case "hr": return el("hr", "");
    case "button": return el("span", `button ${element.type}`, element.text.content);
    case "checker": return box(element.checked, element.text.content);
    case "column_set": return el("div", "columns", ...element.columns.map((column) => el("div", "column", ...column.elements.map(larkElement))));
    case "form": return el("div", "form", ...element.elements.map(larkElement));
    case "input": return el("div", "input", el("div", "label", element.label?.content ?? ""), el("div", "field", element.placeholder?.content ?? ""));
    case "table": {
      const head = el("tr", "", ...element.columns.map((column) => el("th", "", column.display_name)));
      const rows = element.rows.map((row) => el("tr", "", ...element.columns.map((column) => el("td", "", ...inline(String(row[column.name] ?? ""), "lark")))));
      return el("table", "", head, ...rows);
    }
    default: return unknown(element.tag);
  }
}

function lark(card) {
  const box = el("div", "lark");
  if (card.header) {
    const tags = (card.header.text_tag_list ?? []).map((tag) => el("span", `tag ${tag.color}`, tag.text.content));
    const head = el("div", `head ${card.header.template}`, el("div", "title", card.header.title.content, " ", ...tags));
    if (card.header.subtitle) head.append(el("div", "subtitle", card.header.subtitle.content));
    box.append(head);
  }
  box.append(el("div", "body", ...card.body.elements.map(larkElement)));
  return box;
}

// ---- Slack
const plain = (text) => (text.type === "plain_text" ? [text.text] : markdown(text.text, "slack").childNodes);

function richInline(element) {
  const style = element.style ?? {};
  const dress = (node) => ["bold", "italic", "strike", "code"].reduce((inner, name) => (style[name] ? el({ bold: "b", italic: "i", strike: "s", code: "code" }[name], "", inner) : inner), node);
  switch (element.type) {
    case "text": return dress(document.createTextNode(element.text));
    case "link": return dress(el("a", "", element.text ?? element.url));
    case "user": return el("span", "at", `@${element.user_id}`);
    case "channel": return el("span", "at", `#${element.channel_id}`);
    case "emoji": return document.createTextNode(`:${element.name}:`);
    case "date": return document.createTextNode(element.fallback ?? "");
    default: return unknown(element.type);
  }
}

function richElement(element) {
  switch (element.type) {
    case "rich_text_section": return el("div", "section", ...element.elements.map(richInline));
    case "rich_text_preformatted": return el("pre", "", ...element.elements.map(richInline));
    case "rich_text_quote": return el("blockquote", "", ...element.elements.map(richInline));
    case "rich_text_list": {
      const list = el("div", "list");
      list.style.marginLeft = `${(element.indent ?? 0) * 22}px`;
      element.elements.forEach((item, at) => {
        const mark = element.style === "ordered" ? `${at + 1 + (element.offset ?? 0)}.` : "•";
        list.append(el("div", "item", el("span", "bullet", mark), el("span", "", ...item.elements.map(richInline))));
      });
      return list;
    }
    default: return unknown(element.type);
  }
}

const cell = (value) => (value.type === "raw_text" ? [value.text] : (value.elements ?? []).map(richElement));

function slackBlock(block) {
  switch (block.type) {
    case "header": return el("div", "header", ...plain(block.text));
    case "section": {
      const box = el("div", "section", ...(block.text ? plain(block.text) : []));
      (block.fields ?? []).forEach((field) => box.append(el("div", "fieldtext", ...plain(field))));
      return box;
    }
    case "context": return el("div", "context", ...block.elements.map((element) => (element.text === undefined ? unknown(element.type) : el("span", "", ...plain(element)))));
    case "divider": return el("hr", "");
    case "rich_text": return el("div", "rich", ...block.elements.map(richElement));
    case "markdown": return markdown(block.text, "lark");
    case "actions": return el("div", "actions", ...block.elements.map(slackAction));
    case "plan": return el("div", "plan", el("b", "", block.title), ...block.tasks.map(slackTask));
    case "context_actions": return el("div", "actions", ...block.elements.map((element) => (element.type === "feedback_buttons" ? el("span", "button", "👍  👎") : unknown(element.type))));
    case "table": return el("table", "", ...block.rows.map((row) => el("tr", "", ...row.map((value) => el("td", "", ...cell(value))))));
    case "input": return el("div", "input", el("div", "label", block.label.text), el("div", "field", block.element.placeholder?.text ?? ""), block.hint ? el("div", "hint", block.hint.text) : null);
    default: return unknown(block.type);
  }
}

const TASK_MARKS = { pending: "○", in_progress: "◐", complete: "✓", error: "✗" };

function slackTask(task) {
  const details = task.details ? task.details.elements.map(richElement) : [];
  return el("div", "task", `${TASK_MARKS[task.status] ?? "?"} ${task.title}`, ...details);
}

function slackAction(element) {
  switch (element.type) {
    case "button": return el("span", `button ${element.style ?? ""}`, element.text.text);
    case "checkboxes": {
      const ticked = new Set((element.initial_options ?? []).map((option) => option.value));
      return el("div", "boxes", ...element.options.map((option) => box(ticked.has(option.value), option.text.text)));
    }
    default: return unknown(element.type);
  }
}

function slack(message) {
  if (message.type === "modal") {
    return el("div", "modal", el("div", "modaltitle", message.title.text), ...message.blocks.map(slackBlock),
      el("div", "actions end", el("span", "button", message.close?.text ?? ""), el("span", "button primary", message.submit?.text ?? "")));
  }
  const blocks = message.blocks?.length ? message.blocks.map(slackBlock) : [markdown(message.text, "slack")];
  return el("div", "slack", el("div", "avatar", "C"), el("div", "content", el("div", "who", el("b", "", "Countersign"), el("span", "app", "APP")), ...blocks));
}

const pictures = document.getElementById("pictures");
for (const { name, card } of window.CARDS) {
  const drawn = card.schema === "2.0" ? lark(card) : slack(card);
  pictures.append(el("figure", "", el("figcaption", "", name), drawn));
}
