import { useTranslation } from "react-i18next";
import classes from "./Govern.module.css";
import { fillTone } from "./tones";

interface Props {
  used: number;
  limit: number;
  label: string;
  text: string;
}

/** UsageMeter shows a used share as a bar and as numbers. */
export function UsageMeter({ used, limit, label, text }: Props) {
  const { t, i18n } = useTranslation();
  const share = limit > 0 ? Math.min(1, used / limit) : 0;
  const percent = new Intl.NumberFormat(i18n.language, { style: "percent", maximumFractionDigits: share < 0.1 ? 1 : 0 }).format(share);
  return (
    <span className={classes.meter} title={`${label}: ${text}`}>
      <span>{t("fleet.percent", { percent })}</span>
      <span className={classes.bar} role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={limit} aria-valuenow={used} aria-valuetext={text} data-tone={fillTone(share)}>
        <span style={{ width: `${share * 100}%` }} />
      </span>
    </span>
  );
}
