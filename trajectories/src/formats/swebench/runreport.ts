/** Writes the run report `MODEL.RUN.json` as the SWE-bench harness does, including results of earlier starts. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { guessInfra, isSmith, type RunEntry, runReport, smithRunReport } from '@swefarm/grading';
import { inFolder, readIfThere } from '../../output/appendfile.ts';
import { folderOf, type Prediction } from './predictions.ts';
import { FILES, instanceFolder, pythonJson, readReport } from './tree.ts';

export type RunReportRequest = {
  logs: string;
  reportDir: string;
  run: string;
  /** Ids of the selected rows of the dataset. */
  instanceIds: readonly string[];
  /** All accepted predictions (at least one), including those of rows that were not selected. */
  predictions: readonly Prediction[];
  grader: string;
};

/** Writes the report and returns its path. Throws UnusableError `output_unwritable`. */
export async function writeRunReport(request: RunReportRequest): Promise<string> {
  const { reportDir, run, predictions, grader } = request;
  const byId = new Map(predictions.map((prediction) => [prediction.instance_id, prediction]));
  const entries: RunEntry[] = [];
  for (const id of request.instanceIds) entries.push(await entryOf(id, byId.get(id), request));
  const report = runReport(entries, [...byId.keys()], grader, { engine: true });
  const path = join(reportDir, `${reportName(predictions, run)}.json`);
  await writeReportFile(path, `${pythonJson(report)}\n`);
  if (isSmith(grader)) {
    const own = join(request.logs, run, FILES.report);
    await writeReportFile(own, `${pythonJson(smithRunReport(entries))}\n`);
  }
  return path;
}

/** Returns the file name of a run report, which contains the model of the first prediction as in the SWE-bench harness. */
export const reportName = (predictions: readonly Prediction[], run: string): string =>
  `${folderOf(predictions[0]?.model_name_or_path ?? 'None')}.${run}`;

export const writeReportFile = (path: string, text: string): Promise<void> =>
  inFolder(path, () => writeFile(path, text));

async function entryOf(
  id: string,
  prediction: Prediction | undefined,
  { logs, run, grader }: RunReportRequest,
): Promise<RunEntry> {
  if (!prediction) return { instance_id: id, prediction: 'missing', resolved: null };
  if (prediction.model_patch === null || prediction.model_patch === '') {
    return { instance_id: id, prediction: 'empty', resolved: null };
  }
  const folder = instanceFolder(logs, run, prediction, grader);
  const stored = await readReport(folder, id);
  const resolved = stored.state === 'report' ? stored.report.resolved : null;
  const entry: RunEntry = { instance_id: id, prediction: 'patch', resolved };
  if (grader !== 'swebench-5.0.2' || resolved === true) return entry;
  const texts = [
    await readIfThere(join(folder, FILES.testOutput)),
    await readIfThere(join(folder, FILES.log)),
  ];
  return { ...entry, guess: guessInfra(texts.filter((text) => text !== null).join('\n')) };
}
