/** Tests texts that some readers reject: half surrogate pairs, and separators at which some readers end a line. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { words } from '@swefarm/testkit';
import { expect, test } from 'vitest';
import { storedRollouts, toolTrajectory } from './stored.ts';

const FORMATS = words`
  sft-messages:jsonl swesmith-xml:xml swesmith-xml:tool swesmith-xml:user
  verifier:jsonl openhands:output openhands:completions preds:jsonl
  nemo-gym:rows swe-agent:tree mini-swe-agent:1 mini-swe-agent:1.1 atif:1.7 harbor:job harbor:tokens
`.map((one) => one.split(':'));

/** Returns every text in a value, including keys. */
const textsOf = (value: unknown): string[] =>
  typeof value === 'string'
    ? [value]
    : value !== null && typeof value === 'object'
      ? Object.entries(value).flatMap(([key, inner]) => [key, ...textsOf(inner)])
      : [];

test.each(FORMATS)(
  '%s, form %s: every text is well formed, and lines end at line feeds only',
  async (format = '', form = '') => {
    const base = toolTrajectory();
    const call = { name: 'bash', arguments: '{"command": "echo \\ud83d \\u2028"}' };
    const messages = base.messages.map((message) =>
      message.tool_calls?.[0]?.id === 'c1'
        ? {
            ...message,
            content: '\udc00 \u2028',
            tool_calls: [{ id: 'c1', type: 'function' as const, function: call }],
          }
        : message,
    );
    const stored = await storedRollouts([{ trajectory: { ...base, messages }, patch: '+\ud83d\u2029' }]);
    const { path: out, code } = await stored.exported(format, 'out', '--form', form);
    expect(code).toBe(0);
    const below = await readdir(out, { recursive: true }).catch(() => null);
    const files =
      below === null
        ? [out]
        : below.filter((name) => /\.(json|traj|pred)$/.test(name)).map((name) => join(out, name));
    for (const file of files) {
      const text = await readFile(file, 'utf8');
      expect(text).not.toMatch(/[\u2028\u2029]/);
      const values = /\.(json|traj|pred)$/.test(file) ? [text] : text.trim().split('\n');
      expect(
        values.flatMap((value) => textsOf(JSON.parse(value))).filter((one) => !one.isWellFormed()),
      ).toEqual([]);
    }
  },
);
