/** Opens the recorder of a rollout. */
import { composeLines } from '../lines/compose.ts';
import type { Recorder, RecorderOptions } from '../recorder.ts';
import { lineFactsOf, requireTrainedLines } from './facts.ts';
import { Recording } from './recording.ts';
import { Requests } from './requests.ts';

export function openRecorder(options: RecorderOptions): Recorder {
  const recording = new Recording(options);
  const requests = new Requests(options, recording);
  const { tree } = recording;
  const lines = () => composeLines(tree.answers, options.trainLines);
  return {
    handle: (request, response) => requests.handle(request, response),
    close: (why) => recording.close(why),
    over: recording.over,
    idle: () => recording.idle(),
    trajectory: () => recording.trajectory(),
    requireTrained() {
      if (options.policy.requireTokens) requireTrainedLines(lines(), tree.answers);
    },
    facts: () => ({ ...lineFactsOf(lines(), tree.answers), ...requests.counts() }),
    malformedAnswers: () => recording.malformedAnswers(),
    modelSeconds: () => recording.modelSeconds(),
    [Symbol.asyncDispose]: () => recording[Symbol.asyncDispose](),
  };
}
