import classes from "./Govern.module.css";

interface Props<T extends string> {
  label: string;
  /** The kinds that can be chosen, in this order. */
  values: readonly T[];
  counts: Record<string, number>;
  word: (value: T) => string;
  chosen: readonly T[];
  onChange: (chosen: T[]) => void;
  testId: string;
}

/** CountFilter shows the count of each kind; a count filters the rows by its kind. */
export function CountFilter<T extends string>({ label, values, counts, word, chosen, onChange, testId }: Props<T>) {
  const shown = values.filter((value) => (counts[value] ?? 0) > 0 || chosen.includes(value));
  if (shown.length === 0) return null;
  return (
    <div className={classes.counts} role="group" aria-label={label}>
      {shown.map((value) => (
        <button key={value} type="button" className={classes.count} aria-pressed={chosen.includes(value)} onClick={() => onChange(chosen.includes(value) ? chosen.filter((each) => each !== value) : [...chosen, value])} data-testid={`${testId}-${value}`}>
          {word(value)} <b>{counts[value] ?? 0}</b>
        </button>
      ))}
    </div>
  );
}
