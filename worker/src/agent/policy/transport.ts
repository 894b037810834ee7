/** Sends one request to a policy endpoint; the answer is whole or streamed. The timeout limits silence; an abort closes the socket. */
import { AnswerError, type AnswerSink, type EndpointClient, type Post } from '@swefarm/policy';
import { onAbort } from '@swefarm/shared';
import { type Pause, startDeadline, type Time } from '../deadline.ts';
import { faultOfRequest, PolicyFault } from './fault.ts';

type PostOptions = {
  client: EndpointClient;
  /** Maximum duration of a whole answer; of a streamed answer, maximum time before its first chunk and between two chunks. */
  silenceSeconds: number;
  pause: Pause;
  time: Time;
  signal: AbortSignal;
  onHead: (head: { version: string | null; streamed: boolean }) => void;
};

const MOST_BODY_BYTES = 512 * 1024 ** 2;
/** Time for the body to end after `[DONE]`, so that the connection can be reused. */
const CLOSING_MS = 1_000;
const NOTHING = Buffer.alloc(0);

/**
 * The returned function returns the bytes of the answer; it throws PolicyFault, ContextOverflowError, AnswerError of the sink or for an
 * answer over {@link MOST_BODY_BYTES}, or the signal's reason when aborted. The bytes of a stream go to its sink, and the returned buffer
 * is empty.
 */
export const createPost =
  (options: PostOptions): Post =>
  (route, body, sink) =>
    send(options, route, body, sink);

async function send(
  { client, silenceSeconds, pause, time, signal, onHead }: PostOptions,
  ...[route, body, sink]: Parameters<Post>
): Promise<Buffer> {
  signal.throwIfAborted();
  const controller = new AbortController();
  using _listener = onAbort(signal, () => controller.abort(signal.reason));
  let silent = false;
  const onSilence = () => {
    silent = true;
    controller.abort();
  };
  using silence = startDeadline(silenceSeconds, pause, onSilence, time);
  using closing = new DisposableStack();
  let phase: 'head' | 'body' = 'head';
  const whole: Buffer[] = [];
  let length = 0;
  const takeWhole = (bytes: Buffer) => {
    whole.push(bytes);
    length += bytes.length;
    if (length > MOST_BODY_BYTES)
      throw new AnswerError('garbage', `the answer has over ${MOST_BODY_BYTES} bytes`);
  };
  const ofStream = (streamed: AnswerSink) => (bytes: Buffer) => {
    const before = streamed.done;
    if (streamed.take(bytes)) silence.restart();
    if (streamed.done && !before) closing.use(time.after(CLOSING_MS, () => controller.abort()));
  };
  try {
    await client.post(route, body, controller.signal, (head) => {
      phase = 'body';
      const streamed = sink !== undefined && isStream(head.header('content-type'));
      if (route === 'chat' || route === 'completions')
        onHead({ version: head.header('x-policy-version'), streamed });
      return streamed ? ofStream(sink) : takeWhole;
    });
    return Buffer.concat(whole);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof AnswerError) throw error;
    if (sink?.finished) return NOTHING;
    if (silent) {
      const what = phase === 'head' ? 'answer' : 'more of the answer';
      throw new PolicyFault('policy_silent', 'never', `no ${what} within ${silenceSeconds} s`, {
        cause: error,
      });
    }
    throw faultOfRequest(error, phase, route);
  }
}

const isStream = (type: string | null): boolean =>
  type?.toLowerCase().startsWith('text/event-stream') ?? false;
