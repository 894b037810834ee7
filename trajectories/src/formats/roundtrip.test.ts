/** Export, import, export: for any texts, the second export equals the first. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeArtifact, jsonText, type Message, type Trajectory, type Turn } from '@swefarm/shared';
import { bareArtifact, bareTrajectory, bareTurn } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { aReport, aResult } from '../../test/result.ts';
import { type ExportedRollout, exportedRollout } from '../export/rollout.ts';
import { openImportStore } from '../export/storeimported.ts';
import { outputLine } from '../output/line.ts';
import { EXPORT_FORMATS, IMPORT_FORMATS } from './registry.ts';

/** Any UTF-16 code units, including lone surrogates, NUL and emoji; often empty, sometimes a long output. */
const text = fc.oneof(
  { weight: 6, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
  {
    weight: 2,
    arbitrary: fc
      .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 12 })
      .map((units) => String.fromCharCode(...units)),
  },
  { weight: 1, arbitrary: fc.constantFrom('', '\ud83d', '\0', '👩‍🚒'.repeat(3)) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 40_000 }).map((times) => 'x\ty\n'.repeat(times)) },
);
const line = fc.stringMatching(/^[a-z][ -~]{0,20}$/);

/** One answer and its observation. Its commands are one to three tool calls, or at most one fenced block. */
const step = (tools: boolean) =>
  fc.record({
    text,
    thought: fc.option(text, { nil: undefined }),
    commands: fc.array(line, { minLength: tools ? 1 : 0, maxLength: tools ? 3 : 1 }),
    seen: text,
    seconds: fc.double({ min: 0, max: 1e4, noNaN: true }),
    code: fc.option(fc.integer({ min: 0, max: 255 }), { nil: null }),
  });

type StepFacts = typeof step extends (tools: boolean) => fc.Arbitrary<infer T> ? T : never;

function trajectoryOf(tools: boolean, steps: readonly StepFacts[]): Trajectory {
  const messages: Message[] = [
    { role: 'system', content: 'fix' },
    { role: 'user', content: 'this' },
  ];
  const turns: Turn[] = steps.map(({ text, thought, commands, seen, seconds, code }, at) => {
    const message = messages.length;
    const reasoning = thought === undefined ? {} : { reasoning_content: thought };
    const ids = commands.map((_, index) => `c${at}_${index}`);
    if (tools) {
      const tool_calls = commands.map((command, index) => ({
        id: ids[index] ?? '',
        type: 'function' as const,
        function: { name: 'bash', arguments: JSON.stringify({ command }) },
      }));
      messages.push({ role: 'assistant', content: text === '' ? null : text, ...reasoning, tool_calls });
      for (const tool_call_id of ids) messages.push({ role: 'tool', content: seen, tool_call_id });
    } else {
      const blocks = commands.map((command) => `\n\n\`\`\`bash\n${command}\n\`\`\``).join('');
      messages.push({ role: 'assistant', content: `${text}${blocks}`, ...reasoning });
      messages.push({ role: 'user', content: seen });
    }
    return bareTurn(message, {
      model_seconds: seconds,
      usage: { prompt_tokens: at, completion_tokens: at + 1 },
      policy_version: { start: `${at}`, end: null },
      commands: commands.map((command) => ({
        ...{ command, exit_code: code, seconds, output_bytes: seen.length },
        note: code === null ? ('timed_out' as const) : null,
      })),
    });
  });
  return bareTrajectory({ endpoint: 'http://p', messages, turns, sampling: { temperature: 0.5 } });
}

const trajectories = fc
  .boolean()
  .chain((tools) =>
    fc.array(step(tools), { minLength: 1, maxLength: 4 }).map((steps) => trajectoryOf(tools, steps)),
  );

function storedRollout(trajectory: Trajectory, patch: string, resolved: boolean): ExportedRollout {
  const result = aResult({ resolved, reward: Number(resolved), policy_version: '7' });
  const { rollout_id, instance_id } = result;
  const content = bareArtifact({ rollout_id, instance_id, trajectory, patch });
  const report = aReport({ resolved });
  const line = { ...outputLine(result, { patch, report }), cost: 0.0625 };
  return exportedRollout({ line, content, sample: 0, instance: null, model: null, exportedBy: 'x' });
}

async function write(format: string, form: string, path: string, rollout: ExportedRollout): Promise<void> {
  const request = { path, form, samples: 1, lines: 'main' as const, fingerprint: 'x' };
  await using writer = await (EXPORT_FORMATS[format] as (typeof EXPORT_FORMATS)[string]).open(request);
  expect(await writer.write(rollout)).toBe(undefined);
  await writer.finish();
}

async function importedAgain(format: string, path: string, folder: string): Promise<ExportedRollout> {
  const output = join(folder, 'imported.jsonl');
  const target = { runId: 'r2', format, output, artifacts: join(folder, 'artifacts'), model: null };
  await using store = await openImportStore(target);
  for await (const found of (IMPORT_FORMATS[format] as (typeof IMPORT_FORMATS)[string]).read(path)) {
    if ('problem' in found) throw new Error(found.problem);
    await store.add(found);
  }
  await store.finish();
  const line = JSON.parse((await readFile(output, 'utf8')).trim());
  const content = await decodeArtifact(await readFile(line.artifact_file));
  expect(line).toMatchObject({ run_id: 'r2', imported: { format, origin: { run_id: 'r1' } } });
  if (format !== 'preds') expect(line.cost).toBe(0.0625);
  return exportedRollout({ line, content, sample: 0, instance: null, model: null, exportedBy: 'x' });
}

/** Fields that differ after an import, so the comparison of files omits them. */
const ORIGIN = new Set(['run_id', 'rollout_id', 'imported', 'facts', 'software_version', 'git_commit']);
const withoutOrigin = (json: string): unknown =>
  JSON.parse(json, (key, value) => (ORIGIN.has(key) ? undefined : value));

async function filesIn(path: string): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  for (const entry of await readdir(path, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const content = await readFile(join(entry.parentPath, entry.name), 'utf8');
    found[entry.name] = /\.(traj|json|jsonl|pred)$/.test(entry.name) ? withoutOrigin(content) : content;
  }
  return found;
}

/** Formats and forms that represent a whole trajectory except its token ids. */
const WHOLE = new Set(['mini-swe-agent 1.1', 'swe-agent tree', 'openhands output', 'openhands completions']);

test.each([
  ['mini-swe-agent', '1.1'],
  ['mini-swe-agent', '1'],
  ['swe-agent', 'tree'],
  ['openhands', 'output'],
  ['openhands', 'completions'],
  ['preds', 'jsonl'],
])('%s %s: an import and a second export lose nothing that it carries', async (format, form) => {
  await fc.assert(
    fc.asyncProperty(trajectories, line, fc.boolean(), async (trajectory, patch, resolved) => {
      const folder = temporaryFolder('roundtrip');
      const [first, second] = [join(folder, 'first'), join(folder, 'second')];
      const name = EXPORT_FORMATS[format]?.shape === 'file' ? '/out.jsonl' : '/tree';
      await write(format, form, first + name, storedRollout(trajectory, patch, resolved));
      const again = await importedAgain(format, first + name, folder);
      // `jsonText` writes a lone surrogate as U+FFFD.
      const written: unknown = JSON.parse(jsonText(trajectory));
      if (WHOLE.has(`${format} ${form}`)) expect(again.content?.trajectory).toEqual(written);
      await write(format, form, second + name, again);
      expect(await filesIn(second)).toEqual(await filesIn(first));
    }),
    { numRuns: 40 },
  );
});
