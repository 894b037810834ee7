/** Two rollouts side by side: their turns, their patches, and the first turn that differs. */
import type { PageDetail } from '../../src/page/data.ts';
import { rolloutPath } from './api.ts';
import { Facts } from './facts.tsx';
import { useLoaded } from './load.ts';
import { Notice } from './notice.tsx';
import { Patches } from './patch.tsx';
import { nameOf, toRollout } from './route.ts';
import { Timing } from './timing.tsx';
import { Turn } from './turn.tsx';
import { parting, shownTurns } from './turns.ts';

export function Compare({ ids }: { ids: [string, string] }) {
  const one = useLoaded<PageDetail>(rolloutPath(ids[0]));
  const other = useLoaded<PageDetail>(rolloutPath(ids[1]));
  if (!one.value || !other.value) return <Notice error={one.error ?? other.error} />;
  const sides = [one.value, other.value].map((detail) => ({
    ...{ detail, id: detail.rollout_id, name: nameOf(detail.rollout_id) },
    turns: detail.trajectory ? shownTurns(detail.trajectory).turns : [],
  }));
  const parts = parting(...sides.map(({ turns }) => turns));
  const [left, right] = sides.map(({ name, detail }) => ({ name, patch: detail.patch, none: 'No patch.' }));
  return (
    <>
      <h1>Side by side</h1>
      <div className="pair">
        {sides.map(({ id, name, detail, turns }) => (
          <section key={id} aria-label={name}>
            <h2>
              <a className="mono" href={toRollout(id)}>
                {name}
              </a>
            </h2>
            <Facts detail={detail} turns={turns.length} />
            {detail.result && <Timing seconds={detail.result.seconds} />}
          </section>
        ))}
      </div>
      <h2>Patches</h2>
      {left && right && <Patches left={left} right={right} />}
      <h2>
        Turns{' '}
        <span className="dim">
          {parts === null ? 'no turn differs' : `they differ from turn ${parts + 1}`}
        </span>
      </h2>
      <div className="pair">
        {Array.from({ length: Math.max(...sides.map(({ turns }) => turns.length)) }, (_, at) =>
          sides.map(({ id, turns }) =>
            turns[at] ? (
              <Turn key={`${id} ${at}`} rollout={id} shown={turns[at]} narrow differs={at === parts} />
            ) : (
              <div key={`${id} ${at}`} />
            ),
          ),
        )}
      </div>
    </>
  );
}
