import { UnstyledButton } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import classes from "./Timeline.module.css";

/** Longer than this, a text would push what happened since out of sight. */
const longText = 420;
const manyLines = 6;

/** What somebody wrote, as he wrote it; a long one opens on demand. */
export function Comment({ text }: { text: string }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const long = text.length > longText || text.split("\n").length > manyLines;
  return (
    <div className={classes.comment}>
      <p className={long && !open ? classes.clamped : undefined}>{text}</p>
      {long && (
        <UnstyledButton className={classes.toggle} aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? t("ticket.less") : t("ticket.whole")}
        </UnstyledButton>
      )}
    </div>
  );
}
