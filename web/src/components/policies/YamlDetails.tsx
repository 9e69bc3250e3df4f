import { useState } from "react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import classes from "./Policies.module.css";

/** YamlText shows a text in a region that can be scrolled with the keyboard. */
export function YamlText({ text, label }: { text: string; label: string }) {
  return (
    // A scrollable region must be reachable by keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <pre tabIndex={0} role="region" aria-label={label}>{text}</pre>
  );
}

/** YamlDetails is collapsed at first. Its content is rendered when it is opened. */
export function YamlDetails({ children }: { children: () => ReactNode }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  return (
    <details className={classes.yaml} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t("policies.yaml")}</summary>
      {open && children()}
    </details>
  );
}
