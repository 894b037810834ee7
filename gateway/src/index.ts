export { readCallers } from './access/callers.ts';
export { NOT_FOR_OPEN_RUNS } from './calls/notforopenruns.ts';
export { servePage } from './localpage.ts';
export { ensurePage } from './page/built.ts';
export type { RunStatus } from './page/data.ts';
export { FarmSource } from './page/farmsource.ts';
export { readFileSource } from './page/filesource.ts';
export { type FarmStatus, farmStatus, unknownRun } from './page/status.ts';
export { type Gateway, startGateway } from './server.ts';
