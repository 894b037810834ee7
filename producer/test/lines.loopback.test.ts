/** What `show` and `export` tell of a rollout whose agent has several lines. */
import { readdir, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { run } from './cli.ts';
import { branchedRollout } from './lines.ts';
import { storedRollouts } from './stored.ts';

test('show prints each line with its kind, origin and mask, and how the agent asked', async () => {
  const stored = await storedRollouts([branchedRollout()]);
  const { code, stdout } = await run(['show', `${stored.results}#a__b-1.0`, '--full']);
  expect(code).toBe(0);
  const told = stdout.split('\n');
  const titles = told.flatMap((line) => /^── (.*?) ─+$/.exec(line)?.[1] ?? []);
  expect(titles.filter((title) => /^(line|turn|end)/.test(title))).toEqual([
    'line L1: main',
    'turn 1 (1.0 s, 3 + 2 tokens, weights w1, first prompt)',
    'turn 2 (1.0 s, 7 + 3 tokens, weights w1, given back in another form, asked 2 times)',
    'line L2: subagent',
    'turn 1 (1.0 s, 2 + 2 tokens, weights w1, first prompt)',
    'turn 2 (1.0 s, 5 + 1 tokens, weights w1)',
    'line L3: summary',
    'turn 1 (1.0 s, 4 + 4 tokens, weights w1, first prompt)',
    'line L4: main',
    'turn 1 (1.0 s, 5 + 2 tokens, weights w1, prompt rendered whole: other prompt)',
    'line L5: abandoned',
    'turn 1 (1.0 s, 7 + 5 tokens, weights w1)',
    'line L6: subagent',
    'turn 1 (1.0 s, 7 + 3 tokens, weights w1)',
    'end',
  ]);
  expect(told).toContain('continues L1 after 1 of its turns, 1 turns, is not trained on (abandoned)');
  expect(told).toContain('submitted after 8 turns in 6 lines');
  expect(told).toContain('output: 5 of 900 bytes');
  expect(stdout).toContain(
    'agent claude-code 2.1, exit code 0, 6 lines; 9 requests: 3 rendered whole, 1 repeated, 1 given back in another form, 0 refused; turns that are not trained on: 1 abandoned; left out of requests: tool web_search (9)',
  );
});

test('show --out writes the outputs of the agent, and none outside of its folder', async () => {
  const stored = await storedRollouts([branchedRollout()]);
  const name = `${stored.results}#a__b-1.0`;
  const { code, stderr } = await run(['show', name, '--out', stored.at('out')]);
  expect(code).toBe(0);
  expect(stderr).toContain('output: its end was not stored');
  const files = (await readdir(stored.at('out'), { recursive: true, withFileTypes: true })).filter((one) =>
    one.isFile(),
  );
  expect(
    files.map(({ parentPath, name }) => `${parentPath}/${name}`.slice(stored.folder.length)).sort(),
  ).toEqual(['/out/_/_/etc/x', '/out/output', '/out/sessions/a_b.jsonl']);
  expect([...(await readFile(stored.at('out/_/_/etc/x')))]).toEqual([1, 255]);
  const without = await storedRollouts([{}]);
  const none = await run(['show', `${without.results}#a__b-1.0`, '--out', without.at('out')]);
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('has no outputs')]);
});

test('an export says what it leaves out of the lines', async () => {
  const { exported } = await storedRollouts([branchedRollout(), {}]);
  const main = await exported('sft-messages', 'main.jsonl', '--lines', 'main');
  expect(main.stderr).toContain('lines left out (main line only): 4, with 5 turns and 12 sampled tokens');
  expect(main.stderr).toContain('lines left out (abandoned): 1, with 1 turns and 5 sampled tokens');
  const all = await exported('sft-messages', 'all.jsonl');
  expect(all.stderr).not.toContain('main line only');
  expect((await readFile(all.path, 'utf8')).trimEnd().split('\n')).toHaveLength(6);
  const tree = await exported('swe-agent', 'tree', '--per-instance', '1', '--lines', 'all');
  expect([tree.code, tree.stderr]).toEqual([
    2,
    expect.stringContaining('--lines all: --format swe-agent has main'),
  ]);
});

test('--max-tokens measures the longest line that is exported', async () => {
  const { exported } = await storedRollouts([branchedRollout(), { over: { instance_id: 'a__b-2' } }]);
  const ids = async (name: string, ...more: string[]) => {
    const { path } = await exported('sft-messages', name, ...more);
    return (await readFile(path, 'utf8'))
      .trimEnd()
      .split('\n')
      .map((row) => JSON.parse(row).swefarm.line);
  };
  expect(await ids('ten.jsonl', '--max-tokens', '10')).toEqual(['L1', 'L2', 'L3', 'L4', 'L6']);
  // The abandoned line has 12 tokens, but is not exported; the other rollout has 150.
  expect((await exported('sft-messages', 'none.jsonl', '--max-tokens', '9')).code).toBe(2);
});
