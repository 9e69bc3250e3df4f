import { UnstyledButton } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import classes from "./Timeline.module.css";

/** longText is the length in characters above which a text is collapsed, so that later events stay visible. */
const longText = 420;
const manyLines = 6;

/** Comment shows a person's text unchanged. A long text is collapsed until it is opened. */
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
