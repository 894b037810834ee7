/**
 * Chat templates of eight families in both renderers: what is stored is what the server was asked, and what is appended is
 * what the template's engine makes of the whole chat. run.ts does the same with ten thousand conversations and the real templates.
 */
import { readFileSync } from 'node:fs';
import { Template } from '@huggingface/jinja';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { FAMILIES } from './families.ts';
import { familyFolder, type Render, startSamplingServer, withObjects } from './server.ts';
import { play, talks } from './talk.ts';

const CONVERSATIONS = 12;

describe.each(FAMILIES)('$name', (family) => {
  const source = readFileSync(new URL(`chats/${family.name}.jinja`, import.meta.url), 'utf8');
  test.each(['folder', 'server'])('generated conversations, rendered by the %s', async (renderer) => {
    await using made = await familyFolder(family.tokens, source);
    const template = new Template(source);
    const render: Render = ({ messages, tools, open }) =>
      template.render({
        ...{
          messages: withObjects(messages),
          add_generation_prompt: open,
          bos_token: '<s>',
          eos_token: '</s>',
        },
        ...(tools.length > 0 ? { tools } : {}),
      });
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
