// An OpenAI-compatible server of one small model on this machine: `node small-model.mjs FOLDER_OF_PACKAGES MODEL.gguf PORT`.
// It streams. It knows no tools, and of the system prompt only the beginning: the model is far too small for more.
import http from "node:http";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";

const [packages, modelPath, port] = process.argv.slice(2);
const entry = createRequire(`${packages}/package.json`).resolve("node-llama-cpp");
const {getLlama, LlamaChatSession} = await import(pathToFileURL(entry));
const llama = await getLlama({build: "never", gpu: false, maxThreads: 1});
const model = await llama.loadModel({modelPath});

async function answer(body, told) {
  const context = await model.createContext({contextSize: 2048});
  try {
    const system = body.messages.find((message) => message.role === "system")?.content.slice(0, 200);
    const question = body.messages.findLast((message) => message.role === "user").content;
    const session = new LlamaChatSession({contextSequence: context.getSequence(), systemPrompt: system});
    return await session.prompt(question, {maxTokens: 48, temperature: 0, onTextChunk: told});
  } finally {
    await context.dispose();
  }
}

http.createServer(async (request, response) => {
  let text = "";
  for await (const piece of request) text += piece;
  if (request.method !== "POST") return response.end("ready");
  const body = JSON.parse(text);
  if (!body.stream) {
    const content = await answer(body, () => {});
    response.setHeader("content-type", "application/json");
    return response.end(JSON.stringify({choices: [{message: {role: "assistant", content}, finish_reason: "stop"}]}));
  }
  response.setHeader("content-type", "text/event-stream");
  const chunk = (delta, finish_reason) => response.write(`data: ${JSON.stringify({choices: [{index: 0, delta, finish_reason}]})}\n\n`);
  await answer(body, (content) => chunk({content}, null));
  chunk({}, "stop");
  response.end("data: [DONE]\n\n");
}).listen(Number(port), "127.0.0.1");
