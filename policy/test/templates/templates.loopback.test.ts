/**
 * Chat templates of eight families in both renderers. The stored tokens are those that the server got, and the appended text is the end
 * of the template's rendering of the whole chat. run.ts does the same with ten thousand conversations and the real templates.
 */
import { readFileSync } from 'node:fs';
import { Template } from '@huggingface/jinja';
import { PolicyConfig } from '@swefarm/shared';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { openRenderer } from '../../src/template/renderer.ts';
import { agentTalks, openTalkCounts, playAgent } from './agenttalk.ts';
import { FAMILIES } from './families.ts';
import { familyFolder, type Render, startSamplingServer, withObjects } from './server.ts';
import { play, talks } from './talk.ts';

const CONVERSATIONS = 12;

const renderedBy =
  (template: Template): Render =>
  ({ messages, tools, open }) =>
    template.render({
      ...{ messages: withObjects(messages), add_generation_prompt: open },
      ...{ bos_token: '<s>', eos_token: '</s>', ...(tools.length > 0 ? { tools } : {}) },
    });

describe.each(FAMILIES)('$name', (family) => {
  const source = readFileSync(new URL(`chats/${family.name}.jinja`, import.meta.url), 'utf8');
  test.each(['folder', 'server'])('generated conversations, rendered by the %s', async (renderer) => {
    await using made = await familyFolder(family.tokens, source);
    const render = renderedBy(new Template(source));
    await using server = await startSamplingServer(made.tokenizer, render);
    const folder = renderer === 'folder' ? made.folder : null;
    await fc.assert(
      fc.asyncProperty(talks, (talk) =>
        play(talk, family, server, folder, (ids) => made.tokenizer.decode(ids), render),
      ),
      { numRuns: CONVERSATIONS, seed: 14 },
    );
  });
});

describe.each(FAMILIES)('$name, by an agent that comes as a program', (family) => {
  const source = readFileSync(new URL(`chats/${family.name}.jinja`, import.meta.url), 'utf8');
  test.each(['folder', 'server'])('generated conversations, rendered by the %s', async (renderer) => {
    await using made = await familyFolder(family.tokens, source);
    const reference = renderedBy(new Template(source));
    await using server = await startSamplingServer(made.tokenizer, reference);
    const folder = renderer === 'folder' ? made.folder : null;
    const decode = (ids: Iterable<number>) => made.tokenizer.decode(ids);
    const counts = openTalkCounts();
    const stage = { family, server, folder, decode, reference, counts };
    await fc.assert(
      fc.asyncProperty(agentTalks, (steps) => playAgent(steps, stage)),
      { numRuns: CONVERSATIONS, seed: 28 },
    );
    expect(counts.continued).toBeGreaterThan(20);
    expect(counts.forked).toBeGreaterThan(10);
  });
});

const never = () => Promise.reject(new Error('nothing is sent here'));
const QUESTION = [{ role: 'user' as const, content: 'hi' }];

test("a chat template of the run replaces the folder's and gets the run's switches", async () => {
  await using made = await familyFolder([], "{{ 'folder' }}");
  const render = async (extra_body: object): Promise<string> => {
    const config = { urls: [], model: 'm', token_mode: 'token-in', tokenizer: made.folder, extra_body };
    const renderer = await openRenderer(PolicyConfig.parse(config));
    return await renderer.decode(await renderer.render(QUESTION, [], never), never);
  };
  expect(await render({})).toBe('folder');
  const chat_template = "{{ 'own' }}{{ ' and quick' if not enable_thinking }}";
  expect(await render({ chat_template })).toBe('own and quick');
  expect(await render({ chat_template, chat_template_kwargs: { enable_thinking: true } })).toBe('own');
  await expect(render({ chat_template: '{% if %}' })).rejects.toMatchObject({ kind: 'template' });
});
