/** Asks for the gateway's token once a tab. */
import { useState } from 'react';
import { hasToken, keepToken } from './api.ts';

export function Login({ onDone }: { onDone: () => void }) {
  const [token, setToken] = useState('');
  const [refused] = useState(hasToken);
  return (
    <main className="login">
      <h1>swefarm</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          keepToken(token.trim());
          onDone();
        }}
      >
        <label htmlFor="token">Token of the gateway</label>
        <input
          id="token"
          type="password"
          autoComplete="current-password"
          required
          value={token}
          onChange={(event) => setToken(event.target.value)}
          aria-describedby="token-help"
        />
        <button type="submit">Open</button>
        <p id="token-help" role={refused ? 'alert' : undefined}>
          {refused
            ? 'This token is not known here.'
            : 'It is kept in this tab until it is closed, and sent as a header only.'}
        </p>
      </form>
    </main>
  );
}
