/** The table of policy faults: the failure class of each fault, and whether a retry can help. */
import {
  type AnswerError,
  APIError,
  ContextOverflowError,
  PICTURES_REMEDY,
  PromptTooLongError,
  parseOverflow,
  type Route,
  refusedSamplingKey,
  refusesPictures,
  samplingKeyRemedy,
} from '@swefarm/policy';
import { errorMessage, type FailureClass } from '@swefarm/shared';

/** `patience`: retry until the patience of the run ends; `few`: at most {@link FEW} requests in that time; `never`: no retry. */
export type RetryRule = 'patience' | 'few' | 'never';
export const FEW = 3;

/** Failure of one request; the turn may still succeed with another request. */
export class PolicyFault extends Error {
  override readonly name = 'PolicyFault';
  readonly failureClass: FailureClass;
  readonly retry: RetryRule;
  /** Delay that the server asked for; null: none. */
  readonly retryAfterSeconds: number | null;
  /** Whether the endpoint is healthy but overloaded (HTTP 429). */
  readonly busy: boolean;
  /** Whether the endpoint refused the request for now (HTTP 429 or 503). */
  readonly refused: boolean;

  constructor(
    failureClass: FailureClass,
    retry: RetryRule,
    message: string,
    options: { cause?: unknown; retryAfterSeconds?: number | null; busy?: boolean; refused?: boolean } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.failureClass = failureClass;
    this.retry = retry;
    this.retryAfterSeconds = options.retryAfterSeconds ?? null;
    this.busy = options.busy ?? false;
    this.refused = options.refused ?? false;
  }
}

const WIRE_CLASSES = {
  garbage: 'policy_garbage',
  broken_off: 'policy_server_error',
  aborted: 'policy_server_error',
  cut_short: 'policy_unreachable',
} as const;

export function faultOfAnswer(fault: AnswerError): PolicyFault | ContextOverflowError {
  if (fault.kind === 'no_room') {
    const of = fault instanceof PromptTooLongError ? fault.of : undefined;
    return new ContextOverflowError(fault.message, undefined, of);
  }
  if (fault.kind === 'template')
    return new PolicyFault('policy_template', 'never', fault.message, { cause: fault.cause });
  const failureClass = WIRE_CLASSES[fault.kind];
  return new PolicyFault(failureClass, 'few', fault.message, { cause: fault.cause });
}

/** Returns the fault for an error of the HTTP client. `phase` is `body` if the head of the answer had arrived. */
export function faultOfRequest(
  error: unknown,
  phase: 'head' | 'body',
  route: Route,
): PolicyFault | ContextOverflowError {
  if (phase === 'body') {
    return new PolicyFault('policy_unreachable', 'few', `answer cut off: ${shown(error)}`, { cause: error });
  }
  if (!(error instanceof APIError) || error.status === undefined) {
    return new PolicyFault('policy_unreachable', 'patience', shown(error), { cause: error });
  }
  if (error.status === 404 && (route === 'tokenize' || route === 'detokenize')) {
    const message = `the endpoint does not serve /${route} (HTTP 404): name a folder with the model's tokenizer by --tokenizer, or an endpoint that serves it, as vLLM does`;
    return new PolicyFault('policy_model_unknown', 'never', message, { cause: error });
  }
  return faultOfStatus(error.status, error);
}

function faultOfStatus(status: number, error: APIError): PolicyFault | ContextOverflowError {
  const message = `HTTP ${shown(error)}`;
  const retryAfterSeconds = readRetryAfter(error.headers);
  const busy = status === 429;
  const refused = busy || status === 503;
  const fault = (failureClass: FailureClass, retry: RetryRule, what = message) =>
    new PolicyFault(failureClass, retry, what, { cause: error, retryAfterSeconds, busy, refused });
  if (status >= 300 && status < 400) {
    const to = (error.headers?.get('location') ?? 'nowhere').slice(0, 200);
    const why = `HTTP ${status}: redirects to ${to}; name that endpoint itself`;
    return fault('policy_bad_request', 'never', why);
  }
  if (status === 401 || status === 403) return fault('policy_unauthorized', 'never');
  if (status === 404) return fault('policy_model_unknown', 'never');
  if (refused) return fault('policy_server_error', 'patience');
  if (status >= 500 || status === 408) return fault('policy_server_error', 'few');
  if (status === 400 || status === 413 || status === 422) return faultOfRefusal(message, error);
  return fault('policy_bad_request', 'never');
}

function faultOfRefusal(message: string, error: APIError): PolicyFault | ContextOverflowError {
  const overflow = parseOverflow(error.message, error.code);
  if (overflow) return new ContextOverflowError(message, overflow);
  const key = refusedSamplingKey(error.message);
  let why = message;
  if (key !== null) why = `${samplingKeyRemedy(key)}: ${message}`;
  else if (refusesPictures(error.message))
    why = `the endpoint refuses pictures: ${PICTURES_REMEDY}: ${message}`;
  return new PolicyFault('policy_bad_request', 'never', why, { cause: error });
}

/** Reads a delay in seconds from `Retry-After` (seconds or date) or the older `retry-after-ms`; null when absent or unreadable. */
function readRetryAfter(headers: APIError['headers']): number | null {
  const milliseconds = Number.parseFloat(headers?.get('retry-after-ms') ?? '');
  if (Number.isFinite(milliseconds)) return Math.max(0, milliseconds / 1000);
  const text = headers?.get('retry-after')?.trim();
  if (!text) return null;
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
  const date = Date.parse(text);
  return Number.isNaN(date) ? null : Math.max(0, (date - Date.now()) / 1000);
}

const shown = (error: unknown): string => errorMessage(error).slice(0, 250);
