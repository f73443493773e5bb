// What the npm clients openai, ollama, ai with @ai-sdk/openai-compatible (strict parsing) and @openai/agents do with the
// server at $LAPWING_URL.
import assert from "node:assert/strict";

const url = process.env.LAPWING_URL;
const model = "smollm2-135m-instruct";
const messages = [{ role: "user", content: "Name a colour." }];

const { default: OpenAI } = await import("openai");
const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: "any", maxRetries: 0 });
const greedy = { model, messages, temperature: 0, max_tokens: 12 };
const text = (await openai.chat.completions.create(greedy)).choices[0].message.content;
let streamed = "";
for await (const chunk of await openai.chat.completions.create({ ...greedy, stream: true })) streamed += chunk.choices[0]?.delta?.content ?? "";
assert.ok(text);
assert.equal(streamed, text);
assert.equal((await openai.embeddings.create({ model, input: ["a", "b"] })).data.length, 2);
await assert.rejects(openai.chat.completions.create({ ...greedy, model: "gpt-9" }), { status: 404, code: "model_not_found" });
console.log("openai: ok");

const { Ollama } = await import("ollama");
const ollama = new Ollama({ host: url });
const options = { temperature: 0, num_predict: 12 };
assert.equal((await ollama.chat({ model, messages, options })).message.content, text);
let parts = "";
for await (const part of await ollama.chat({ model, messages, options, stream: true })) parts += part.message.content;
assert.equal(parts, text);
assert.equal((await ollama.list()).models[0].name, model);
console.log("ollama: ok");

const { generateText, streamText, generateObject, jsonSchema, tool } = await import("ai");
const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
const provider = createOpenAICompatible({ name: "lapwing", baseURL: `${url}/v1`, includeUsage: true, supportsStructuredOutputs: true });
const common = { model: provider(model), prompt: "Name a colour.", temperature: 0, maxOutputTokens: 12, maxRetries: 0 };
const generated = await generateText(common);
assert.equal(generated.text, text);
assert.ok(generated.usage.outputTokens > 0);
const stream = streamText({ ...common, onError: ({ error }) => { throw error; } });
let whole = "";
for await (const part of stream.textStream) whole += part;
assert.equal(whole, text);
assert.ok((await stream.usage).outputTokens > 0);
const schema = jsonSchema({ type: "object", properties: { colour: { enum: ["red", "green"] } }, required: ["colour"], additionalProperties: false });
const { object } = await generateObject({ ...common, schema, maxOutputTokens: 300 });
assert.ok(["red", "green"].includes(object.colour));
let painted;
const paint = tool({ description: "Paints a wall", inputSchema: schema, execute: async input => { painted = input.colour; return "done"; } });
for (const run of [generateText, streamText]) {
  painted = undefined;
  const result = run({ ...common, tools: { paint }, toolChoice: "required", maxOutputTokens: 300 });
  const calls = await (await result).toolCalls;
  assert.equal(calls[0].toolName, "paint");
  assert.ok(["red", "green"].includes(painted), painted);
}
console.log("ai: ok");

const agents = await import("@openai/agents");
agents.setDefaultOpenAIClient(openai);
agents.setOpenAIAPI("chat_completions");
agents.setTracingDisabled(true);
let asked;
const weather = agents.tool({
  name: "weather", description: "The weather of a city", strict: true,
  parameters: { type: "object", properties: { city: { enum: ["Paris", "Rome"] } }, required: ["city"], additionalProperties: false },
  execute: async ({ city }) => { asked = city; return "sunny"; },
});
const agent = new agents.Agent({
  name: "guide", instructions: "Answer briefly.", model, tools: [weather], toolUseBehavior: "run_llm_again", resetToolChoice: true,
  modelSettings: { temperature: 0, maxTokens: 300, toolChoice: "required" },
});
const run = await agents.run(agent, "How is the weather in Paris?", { maxTurns: 4 });
assert.ok(["Paris", "Rome"].includes(asked), asked);
assert.ok(typeof run.finalOutput === "string");
console.log("@openai/agents: ok");
process.exit(0);
