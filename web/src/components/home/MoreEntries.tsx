import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { isAtLeast } from "../../lib/home";
import { useWords } from "../../lib/use-words";

interface Props {
  /** The kind of the entries, which selects the text. */
  of: "requests" | "connections" | "accesses";
  /** The number of all entries; undefined if it is not known. */
  count: number | undefined;
  /** The number of entries that are shown. */
  shown: number;
  /** Whether there may be more than `count`. */
  partial?: boolean;
  /** The page with all entries. */
  to: string;
  testId: string;
}

/** MoreEntries shows how many entries a list of the home page leaves out, and links the page with all of them. It renders nothing if there is none. */
export function MoreEntries({ of, count, shown, partial = false, to, testId }: Props) {
  const { t } = useTranslation();
  const words = useWords();
  const more = (count ?? 0) - shown;
  if (more <= 0) return null;
  const number = words.number(more);
  const atLeast = partial || (of === "requests" && isAtLeast(count));
  return (
    <p data-testid={testId}>
      <Link to={to}>{t(`home.${atLeast ? "atLeast" : "more"}.${of}`, { count: more, number })}</Link>
    </p>
  );
}
