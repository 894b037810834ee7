export { openFolderTree } from './export/foldertree.ts';
export { type ExportFormat, type ExportWriter, NotExportable } from './export/format.ts';
export { type LeftOut, type LineChoice, leftOutOf } from './export/lines.ts';
export { exportedRollout, type InstanceFields } from './export/rollout.ts';
export { openImportStore } from './export/storeimported.ts';
export { AggregateRequest, aggregate } from './formats/gym/aggregate.ts';
export { answerPieces, hasTrainedTurn, type Unjudged } from './formats/gym/answer.ts';
export { type GymFlags, readGymConfig } from './formats/gym/config.ts';
export { episodeFailure, episodeName, episodePieces, GymRunRequest } from './formats/gym/episode.ts';
export { globalConfig } from './formats/gym/globalconfig.ts';
export { gymFiles } from './formats/gym/rollouts.ts';
export { GymRow, instanceIdOf, instanceOf, policyOf } from './formats/gym/row.ts';
export { type Cause, unjudgedCause } from './formats/gym/unjudged.ts';
export { writeHarborTasks } from './formats/harbor/tasks.ts';
export { EXPORT_FORMATS, IMPORT_FORMATS } from './formats/registry.ts';
export { RESULT_FORMATS, readLines, resultRows } from './formats/results.ts';
export {
  countStatuses,
  type EvaluationStatus,
  evaluationStatusOf,
  STATUS_MEANINGS,
} from './formats/swebench/evaluationstatus.ts';
export { blankFiles, filesOf } from './formats/swebench/files.ts';
export {
  checkPredictions,
  GOLD,
  goldPredictions,
  isFolderName,
  mergePredictions,
  type Prediction,
  readPredictions,
} from './formats/swebench/predictions.ts';
export { reportName, writeReportFile, writeRunReport } from './formats/swebench/runreport.ts';
export {
  FILES,
  instanceFolder,
  LOGS,
  readReport,
  roundName,
  type Stored,
  writeFolder,
} from './formats/swebench/tree.ts';
export { SampleBody, type SampleChoice, sampleOf } from './formats/tokens/sample.ts';
export { writeVerlDataset } from './formats/verl/dataset.ts';
export { PROMPT_STYLES } from './formats/verl/prompts.ts';
export { inFolder, readIfThere, replaceRecord, writing } from './output/appendfile.ts';
export { artifactOfLine, copyOf } from './output/artifact.ts';
export { type Collected, type CollectOptions, collect } from './output/collect.ts';
export {
  type CollectionMark,
  encodeLine,
  type LineSummary,
  lineSummaryOf,
  type OutputLine,
  outputLine,
  type ReportSummary,
  summariseReport,
} from './output/line.ts';
export {
  createOutput,
  type Output,
  type OutputEvaluation,
  OutputFormat,
  OutputRun,
  openOutputFile,
  readOutputRun,
  requireNewOutput,
  streamOutput,
  writeOutputRun,
} from './output/output.ts';
export { plainJson } from './output/plainjson.ts';
export { type Profile, profileOf } from './output/profile.ts';
export { renderReward } from './output/renderreward.ts';
export { Replacements } from './output/replacements.ts';
export { type RewardRule, rewardFields, withReward } from './output/rewardfields.ts';
export { type GroupSummary, type Summary, summarise } from './output/summary.ts';
export { type Column, GAP, middle, renderTable } from './output/table.ts';
export {
  addResult,
  type Countable,
  countNames,
  emptyTally,
  meansOf,
  ratio,
  type Tally,
  tally,
  withVerdict,
} from './output/tally.ts';
export { safeFirstLine, terminalSafe } from './output/terminalsafe.ts';
export {
  findPrice,
  NO_PRICE,
  type PriceFile,
  type Prices,
  priceFor,
  priceOf,
  priceSchema,
  readPrices,
  withPrice,
} from './prices.ts';
export { analyse } from './reports/analysis.ts';
export { compare, comparisonTables } from './reports/compare.ts';
export { type FullReport, markdownOf, renderMarkdown, renderPage } from './reports/document.ts';
export { factOf, type LineFact } from './reports/facts.ts';
export {
  costTable,
  cutTables,
  distributionTables,
  renderFigures,
  scalingTable,
} from './reports/figures.ts';
export { countOutput, countRun } from './reports/read.ts';
export { type ProfileReport, renderReport } from './reports/render.ts';
export { openScores, readScores, type ScoreFile, type ScoreLine, scoresPath } from './scaling/scores.ts';
export { createVerifier, DEFAULT_PROMPT, VERIFIER_FORMS, type Verifier } from './scaling/verifier.ts';
export { type Choice, chooseRollouts, type ExportFilters, PREFERENCES } from './selection/choose.ts';
export { readInstanceFields } from './selection/instancefields.ts';
export { readRecipe, type Shares } from './selection/recipe.ts';
export { openSource, type ResultSource } from './selection/source.ts';
export { fetchChosen } from './selection/stream.ts';
