/** Token ids and log-probabilities of one turn. Unlikely tokens are marked. */
import type { PageTokens } from '../../src/page/data.ts';
import { rolloutPath } from './api.ts';
import { decimal, integer } from './format.ts';
import { useLoaded } from './load.ts';
import { Notice } from './notice.tsx';

/** Maximum number of tokens on the page; a turn may have tens of thousands. */
const MOST = 4_000;
/** Log-probabilities below which a token gets a stronger mark. */
const MARKS = [-0.1, -1, -3];

export function Tokens({ rollout, turn }: { rollout: string; turn: number }) {
  const path = `${rolloutPath(rollout)}/turns/${turn}/tokens`;
  const { value, error } = useLoaded<{ tokens: PageTokens | null }>(path);
  if (!value?.tokens) return <Notice error={error} />;
  const { generation, log_probs, prompt, prefix_length } = value.tokens;
  const sum = log_probs.reduce((all, one) => all + one, 0);
  return (
    <div className="tokens">
      <p className="dim">
        Prompt: {integer(prefix_length)} tokens of earlier turns, then {integer(prompt.length)} new.
        Generated: {integer(generation.length)}, log-probability {decimal(sum, 2)} in all
        {log_probs.length > 0 && `, ${decimal(sum / log_probs.length, 3)} a token`}.
      </p>
      <ol aria-label="Generated tokens">
        {generation.slice(0, MOST).map((token, at) => {
          const probability = log_probs[at];
          const level = MARKS.filter((bound) => (probability ?? 0) < bound).length;
          return (
            <li key={at} className={`p${level}`}>
              {token}
              <small>{probability === undefined ? '' : probability.toFixed(2)}</small>
            </li>
          );
        })}
      </ol>
      {generation.length > MOST && <p className="dim">… and {integer(generation.length - MOST)} more</p>}
      <details>
        <summary>{integer(prompt.length)} new ids of the prompt</summary>
        <pre>{prompt.slice(0, MOST * 4).join(' ')}</pre>
      </details>
    </div>
  );
}
