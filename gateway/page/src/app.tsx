/** Frame of the page: breadcrumbs, one view, and the login if the server needs a token. */
import { lazy, Suspense, useEffect, useRef, useState } from 'react';
import { SWRConfig } from 'swr';
import { access, forgetToken, hasToken, takeKeyFromAddress, Unauthorized } from './api.ts';
import { Compare } from './compare.tsx';
import { LOADING } from './load.ts';
import { Login } from './login.tsx';
import { nameOf, runOf } from './names.ts';
import { Notice } from './notice.tsx';
import { Rollout } from './rollout.tsx';
import { type Route, toRollout, toRun, toRuns, toTrends, useRoute } from './route.ts';
import { Run } from './run.tsx';
import { Runs } from './runs.tsx';

// The chart library is larger than the rest of the page, so only this view loads it.
const Trends = lazy(() => import('./trends.tsx').then(({ Trends }) => ({ default: Trends })));

takeKeyFromAddress();

export function App() {
  const [state, setState] = useState<'asking' | 'in' | 'out'>('asking');
  useEffect(() => {
    access().then(
      (granted) => setState(granted ? 'in' : 'out'),
      // The view shows the error of an unreachable server and retries.
      () => setState('in'),
    );
  }, []);
  if (state === 'asking') return <Notice error={null} />;
  if (state === 'out') return <Login onDone={() => setState('in')} />;
  return <Frame onLeave={() => setState('out')} />;
}

function Frame({ onLeave }: { onLeave: () => void }) {
  const { route, query } = useRoute();
  const main = useRef<HTMLElement>(null);
  const address = JSON.stringify(route);
  const first = useRef(true);
  // A new view scrolls to its start and gets the focus, for screen readers.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a change of the route moves the focus
  useEffect(() => {
    document.title = titleOf(route);
    if (!first.current) main.current?.focus({ preventScroll: true });
    if (!first.current) scrollTo(0, 0);
    first.current = false;
  }, [address]);
  return (
    <>
      <button type="button" className="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <header className="top">
        <nav aria-label="Where you are">
          <ol>
            {crumbs(route).map(([name, to]) => (
              <li key={to}>
                <a href={to}>{name}</a>
              </li>
            ))}
          </ol>
        </nav>
        {hasToken() && (
          <button
            type="button"
            className="quiet"
            onClick={() => {
              forgetToken();
              onLeave();
            }}
          >
            Forget token
          </button>
        )}
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {/* Each run or rollout has its own cache, which is freed when the user leaves the view. */}
        <SWRConfig
          key={crumbs(route).join()}
          value={{ ...LOADING, onError: (error) => error instanceof Unauthorized && onLeave() }}
        >
          <Suspense fallback={<Notice error={null} />}>
            <View route={route} query={query} />
          </Suspense>
        </SWRConfig>
      </main>
    </>
  );
}

function View({ route, query }: { route: Route; query: URLSearchParams }) {
  if (route.view === 'run') return <Run id={route.run} tab={route.tab} query={query} />;
  if (route.view === 'rollout') return <Rollout id={route.rollout} />;
  if (route.view === 'compare') return <Compare ids={route.rollouts} />;
  if (route.view === 'trends') return <Trends query={query} />;
  return <Runs />;
}

function crumbs(route: Route): [string, string][] {
  const all: [string, string][] = [['swefarm', toRuns]];
  if (route.view === 'trends') all.push(['Trends', toTrends()]);
  if (route.view === 'run') all.push([route.run, toRun(route.run)]);
  if (route.view === 'rollout') {
    all.push(
      [runOf(route.rollout), toRun(runOf(route.rollout))],
      [nameOf(route.rollout), toRollout(route.rollout)],
    );
  }
  if (route.view === 'compare') {
    const [one, other] = route.rollouts;
    all.push(
      [runOf(one), toRun(runOf(one))],
      [nameOf(one), toRollout(one)],
      [nameOf(other), toRollout(other)],
    );
  }
  return all;
}

function titleOf(route: Route): string {
  const [, ...rest] = crumbs(route).map(([name]) => name);
  return [...rest.reverse(), 'swefarm'].join(' · ');
}
