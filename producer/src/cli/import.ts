/** `swefarm import`: stores rollouts of another program, for grading and exports. */
import { Instance, newId, UsageError } from '@swefarm/shared';
import { IMPORT_FORMATS, openImportStore, terminalSafe } from '@swefarm/trajectories';
import { choice, command, required, text } from './declare.ts';
import { EXIT } from './exit.ts';
import { listenForStop } from './stop.ts';
import { printStatus } from './terminal.ts';

export const importing = command({
  arguments: {
    '<format>': required(
      choice(
        Object.entries(IMPORT_FORMATS)
          .map(([name, { description }]) => `${name}: ${description}`)
          .join('; '),
        Object.keys(IMPORT_FORMATS),
      ),
    ),
    '<paths...>': 'files or folders',
  },
  options: {
    '--output <file>': required(text('file for the lines')),
    '--artifacts <dir>': text('folder for the trajectories (default: OUTPUT.artifacts)'),
    '--model <name>': text('model that made them (default: as the files name it)'),
  },
  example: 'swefarm import swe-agent trajectories/ --output imported.jsonl',
  async run({ output, artifacts = `${output}.artifacts`, model: named }, { format: name, paths }) {
    const format = IMPORT_FORMATS[name];
    if (!format) throw new UsageError(`${name}: no such format`);
    const stop = listenForStop();
    const runId = newId();
    const counts = { read: 0, patches: 0, trajectories: 0, judged: 0, problems: 0 };
    await using store = await openImportStore({
      runId,
      format: name,
      output,
      artifacts,
      model: named ?? null,
    });
    for (const path of paths) {
      for await (const found of format.read(path)) {
        if (stop.draining.aborted) return EXIT.interrupted;
        const problem = 'problem' in found ? found.problem : problemOfId(found.instance_id);
        if (problem !== null || 'problem' in found) {
          counts.problems += 1;
          if (counts.problems <= SHOWN)
            printStatus(`${found.where}: not imported: ${terminalSafe(problem ?? '')}`);
          continue;
        }
        const model = named ?? found.model;
        const trajectory = found.trajectory && { ...found.trajectory, model };
        const line = await store.add({ ...found, trajectory });
        counts.read += 1;
        if (trajectory) counts.trajectories += 1;
        if (found.patch !== null && found.patch.trim() !== '') counts.patches += 1;
        if (line.resolved !== null) counts.judged += 1;
      }
    }
    if (counts.read === 0)
      throw new UsageError(`nothing was imported: ${counts.problems} problems, no rollout`);
    await store.finish();
    const { read, patches, trajectories, judged, problems } = counts;
    const lost = problems > 0 ? `, ${problems} could not be read` : '';
    printStatus(
      `${read} imported as run ${runId}: ${trajectories} with a trajectory, ${patches} with a patch, ${judged} with a verdict${lost}`,
    );
    printStatus('they have no token ids: an export that needs them leaves them out');
    printStatus(`results: ${output}`);
    if (judged < read)
      printStatus(`grade them with: swefarm eval --from ${output} --dataset DATASET --output GRADED`);
    return problems > 0 ? EXIT.someNotJudged : EXIT.allJudged;
  },
});

/** Returns why an instance id is invalid; null: valid. Artifacts and exports use the id as a file name. */
const problemOfId = (id: string): string | null =>
  Instance.shape.instance_id.safeParse(id).success
    ? null
    : `the instance id ${JSON.stringify(id).slice(0, 100)}: expected letters, digits, ".", "_" and "-", a letter or digit first`;

const SHOWN = 20;
