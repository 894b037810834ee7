export { openRecorder } from './endpoint/openrecorder.ts';
export { createRecorderServer } from './endpoint/server.ts';
export type {
  Continued,
  NoRoom,
  PolicyLine,
  PolicyPoint,
  PolicyRequest,
  RecordedReply,
  Recorder,
  RecorderOptions,
  RolloutOver,
} from './recorder.ts';
