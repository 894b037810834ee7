export type { PolicyLine, RecordedReply, Recorder, RecorderOptions, RolloutOver } from './recorder.ts';
