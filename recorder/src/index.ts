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
