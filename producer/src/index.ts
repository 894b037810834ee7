export type { DatasetFilters } from './datasets/filter.ts';
export { type Dataset, type ReadOptions, readDataset } from './datasets/read.ts';
export { type CollectOptions, collect } from './output/collect.ts';
export {
  encodeLine,
  type LineParts,
  type OutputLine,
  outputLine,
  type ReportSummary,
} from './output/line.ts';
export { type Output, openOutputFile, streamOutput } from './output/output.ts';
export { renderSummary, type Summary, summarise } from './output/summary.ts';
export { EXIT, type ExitCode, exitCode } from './run/exit.ts';
export { newRunRecord, type RunRequest, recordDifferences } from './run/record.ts';
export { rolloutIds, type Submission, type Submitted, submit } from './run/submit.ts';
