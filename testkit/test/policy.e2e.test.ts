/** Tests the scripted policy over loopback: answers, tokens, limits. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ScriptedPolicy, startScriptedPolicy } from '../src/index.ts';
import { loadTokenizer } from '../src/policy/tokenizer.ts';
import { ask, bash, opening, post, script, submit } from './policyclient.ts';

describe('answers', () => {
  let policy: ScriptedPolicy;
  const all = { return_token_ids: true, logprobs: true, top_logprobs: 0 };
  beforeAll(async () => {
    policy = await startScriptedPolicy({ script });
  });
  afterAll(() => policy[Symbol.asyncDispose]());

  it('follow the script by fenced blocks, and the tokens of the turns are contiguous', async () => {
    const tokenizer = loadTokenizer();
    const messages = opening();
    const output: (string | null)[] = [];
    let seen: number[] = [];
    for (let turn = 0; turn < 3; turn++) {
      const { choices, usage, prompt_token_ids: prompt } = await ask(policy, { messages, ...all }, 'r.i.0');
      const [{ message, token_ids: ids, logprobs, finish_reason: finish }] = choices;
      expect(finish).toBe('stop');
      expect(prompt?.slice(0, seen.length)).toEqual(seen);
      expect(usage.prompt_tokens).toBe(prompt?.length);
      expect(usage.completion_tokens).toBe(ids?.length);
      expect(logprobs?.content.length).toBe(ids?.length);
      expect(logprobs?.content.every(({ logprob }) => logprob < 0 && logprob > -5)).toBe(true);
      const bytes = logprobs?.content.flatMap((entry) => entry.bytes) ?? [];
      expect(Buffer.from(bytes).toString()).toBe(tokenizer.decode(ids ?? []));
      expect(tokenizer.decode(ids ?? [])).toBe(`${message.content}<|im_end|>`);
      seen = [...(prompt ?? []), ...(ids ?? [])];
      messages.push({ role: 'assistant', content: message.content }, { role: 'user', content: 'output' });
      output.push(message.content);
    }
    expect(output).toEqual([
      '<think>\nHm.\n</think>\n\n```bash\nls -la\n```',
      '```bash\ncat x\n```',
      '```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n```',
    ]);
    const counted = { requests: 3, answered: 3, turns: 3, variant: 0 };
    expect(policy.stats().rollouts['r.i.0']).toMatchObject(counted);
  });

  it('are tool calls when the request offers tools', async () => {
    const first = await ask(policy, { messages: opening(), tools: [bash, submit] }, 'r.i.0');
    const call = first.choices[0].message.tool_calls?.[0]?.function;
    expect(call).toEqual({ name: 'bash', arguments: '{"command":"ls -la"}' });
    expect(first.choices[0].finish_reason).toBe('tool_calls');
    expect(first.prompt_token_ids).toBeNull();
    const last = await ask(policy, { messages: opening(), tools: [bash, submit] }, 'r.i.1');
    expect(last.choices[0].message.tool_calls?.[0]?.function).toEqual({
      name: 'submit_solution',
      arguments: '{}',
    });
  });

  it('can be malformed or cut', async () => {
    const invalid = await ask(policy, { messages: opening('odd'), tools: [bash] }, 'r.i.0');
    const args = invalid.choices[0].message.tool_calls?.[0]?.function.arguments ?? '';
    expect(() => JSON.parse(args)).toThrow(SyntaxError);
    const cut = await ask(policy, { messages: opening('odd'), tools: [bash] }, 'r.i.1');
    expect(cut.choices[0]).toMatchObject({ finish_reason: 'length' });
    expect(cut.choices[0].message.tool_calls).toBeUndefined();
    const short = await ask(policy, { messages: opening(), max_tokens: 3, ...all }, 'r.i.0');
    expect(short.choices[0].token_ids?.length).toBe(3);
    expect(short.choices[0].finish_reason).toBe('length');
  });

  it('are the same for a repeated request', async () => {
    const twice = [0, 1].map(() => ask(policy, { messages: opening(), ...all }, 'r.i.5'));
    const [a, b] = await Promise.all(twice);
    expect({ ...a, created: 0 }).toEqual({ ...b, created: 0 });
  });

  it('can be streamed: prompt ids once, then all that the whole answer has', async () => {
    const whole = await ask(policy, { messages: opening(), ...all }, 'r.i.0');
    const body = { messages: opening(), ...all, stream: true, stream_options: { include_usage: true } };
    const text = await (await post(policy, body, 'r.i.0')).text();
    const events = text.split('\n\n').filter((event) => event !== '');
    expect(events.at(-1)).toBe('data: [DONE]');
    const chunks = events.slice(0, -1).map((event) => JSON.parse(event.slice('data: '.length)));
    expect(chunks[0].prompt_token_ids).toEqual(whole.prompt_token_ids);
    const choices = chunks.flatMap((chunk) => chunk.choices);
    expect(choices.map((choice) => choice.delta.content ?? '').join('')).toBe(
      whole.choices[0].message.content,
    );
    expect(choices.flatMap((choice) => choice.token_ids ?? [])).toEqual(whole.choices[0].token_ids);
    expect(choices.at(-1).finish_reason).toBe('stop');
    expect(chunks.at(-1).usage).toEqual(whole.usage);
  });

  it('to ids equal the answers to the same messages', async () => {
    const messages = opening();
    const chat = await ask(policy, { messages, ...all, tools: [bash, submit] }, 'r.i.0');
    const send = async (prompt: number[] | null) => {
      const body = JSON.stringify({ model: 'm', prompt, return_token_ids: true, logprobs: 1 });
      const headers = { 'x-swefarm-rollout': 'r.i.0' };
      const response = await fetch(`${policy.url}/completions`, { method: 'POST', body, headers });
      return (await response.json()) as {
        choices: [{ text: string; token_ids: number[]; logprobs: { token_logprobs: number[] } }];
      };
    };
    const [choice] = (await send(chat.prompt_token_ids)).choices;
    expect(choice.token_ids).toEqual(chat.choices[0].token_ids);
    expect(choice.logprobs.token_logprobs).toEqual(
      chat.choices[0].logprobs?.content.map((entry) => entry.logprob),
    );
    const { message } = chat.choices[0];
    messages.push({ role: 'assistant', content: message.content, tool_calls: message.tool_calls });
    messages.push({ role: 'tool', content: 'x' });
    const next = await ask(policy, { messages, ...all, tools: [bash, submit] }, 'r.i.0');
    const second = (await send(next.prompt_token_ids)).choices[0];
    expect(second.token_ids).toEqual(next.choices[0].token_ids);
    expect(second.text).toContain('cat x');
  });

  it('name the problem of a request without a match, JSON or messages', async () => {
    const nothing = await post(policy, { messages: opening('hello') });
    expect(nothing.status).toBe(400);
    expect(await nothing.text()).toContain('no conversation of the script matches');
    expect((await post(policy, { messages: [] })).status).toBe(400);
    const garbage = await fetch(`${policy.url}/chat/completions`, { method: 'POST', body: '{' });
    expect(garbage.status).toBe(400);
    expect((await fetch(`${policy.url}/nothing`)).status).toBe(404);
  });

  it('/tokenize and /detokenize agree with the prompts', async () => {
    const base = policy.url.replace(/\/v1$/, '');
    const { prompt_token_ids: prompt } = await ask(policy, { messages: opening(), ...all }, 'r.i.0');
    const call = async (path: string, body: object) =>
      (await fetch(base + path, { method: 'POST', body: JSON.stringify(body) })).json();
    expect(await call('/tokenize', { messages: opening() })).toMatchObject({
      tokens: prompt,
      count: prompt?.length,
    });
    expect(await call('/detokenize', { tokens: prompt })).toMatchObject({
      prompt: expect.stringContaining('You repair.<|im_end|>'),
    });
  });
});

describe('limits', () => {
  it('a prompt beyond the context is a 400 with the message of vLLM', async () => {
    await using policy = await startScriptedPolicy({ script, contextLimit: 60 });
    expect((await post(policy, { messages: opening() }, 'r.i.0')).status).toBe(200);
    const long = await post(policy, { messages: opening(`fix ${'word '.repeat(100)}`) }, 'r.i.0');
    expect(long.status).toBe(400);
    expect(await long.json()).toMatchObject({
      error: {
        code: 400,
        message: expect.stringContaining("This model's maximum context length is 60 tokens."),
      },
    });
    expect((await post(policy, { messages: opening(), max_tokens: 60 }, 'r.i.0')).status).toBe(400);
  });

  it('a key and a model name are checked when they are set', async () => {
    const named = { ...script, model: 'm' } as typeof script;
    await using policy = await startScriptedPolicy({ script: named, apiKey: 'k' });
    expect((await post(policy, { messages: opening() })).status).toBe(401);
    const headers = { authorization: 'Bearer k' };
    const other = JSON.stringify({ model: 'other', messages: opening() });
    const response = await fetch(`${policy.url}/chat/completions`, { method: 'POST', headers, body: other });
    expect(response.status).toBe(404);
    const models = await (await fetch(`${policy.url}/models`, { headers })).json();
    expect(models).toMatchObject({ data: [{ id: 'm' }] });
  });
});
