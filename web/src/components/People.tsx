import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Person } from "../api/types";
import { PersonName } from "./Names";
import tables from "./Tables.module.css";

/** mostPeople is the number of people who are named at first. */
const mostPeople = 6;

/** People names some people and how many others there are. The others are named on request, as far as the portal lists them. */
export function People({ people, total = people.length }: { people: Person[]; total?: number | undefined }) {
  const { t } = useTranslation();
  const [all, setAll] = useState(false);
  // One more name is no longer than the words that there is one more.
  const shown = all || people.length <= mostPeople + 1 ? people : people.slice(0, mostPeople);
  const hidden = Math.max(total, people.length) - shown.length;
  const more = t("people.more", { count: hidden });
  return (
    <>
      {shown.map((person) => (
        <PersonName key={person.id} person={person} />
      ))}
      {hidden > 0 &&
        (shown.length < people.length ? (
          <button type="button" className={tables.linkButton} onClick={() => setAll(true)} data-testid="more-people">
            {more}
          </button>
        ) : (
          <span data-testid="more-people">{more}</span>
        ))}
    </>
  );
}
