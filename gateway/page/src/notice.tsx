/** Shows an error, or `Loading …` without an error. `quiet`: the view already shows data, so `Loading …` is omitted. */
export function Notice({ error, quiet = false }: { error: Error | null; quiet?: boolean }) {
  if (error) {
    return (
      <p role="alert" className="notice bad">
        {error.message}
        {quiet ? ' The page may be out of date; retrying.' : ''}
      </p>
    );
  }
  return quiet ? null : (
    <p className="notice dim" role="status">
      Loading …
    </p>
  );
}
