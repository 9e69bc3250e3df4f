import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { basketLimit } from "../../lib/request";
import { ApplicationSelect, ApplicationsSelect } from "../EntitySelect";
import tables from "../Tables.module.css";
import classes from "./Request.module.css";

interface Props {
  /** mine offers only applications for which the person may request access. */
  mine: boolean;
  description?: string;
  value: string[];
  onChange: (applications: string[]) => void;
  /** single offers no second application, for people who have only one. */
  single?: boolean;
  error?: string | undefined;
  nothingFound: string;
}

/** ApplicationsField selects the application of a request, and on demand several ones. */
export function ApplicationsField({ mine, description, value, onChange, single = false, error, nothingFound }: Props) {
  const { t } = useTranslation();
  const [opened, setOpened] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  // The button that had the focus is gone.
  useEffect(() => {
    if (opened) field.current?.focus();
  }, [opened]);
  if (opened || value.length > 1) {
    return (
      <ApplicationsSelect
        mine={mine}
        label={t("request.applications")}
        description={t("request.applicationsHint")}
        required
        max={basketLimit}
        value={value}
        onChange={onChange}
        error={error}
        nothingFound={nothingFound}
        inputRef={field}
        testId="select-applications"
      />
    );
  }
  return (
    <div>
      <ApplicationSelect
        mine={mine}
        label={t("request.application")}
        description={description}
        required
        value={value[0] ?? ""}
        onChange={(application) => onChange(application === "" ? [] : [application])}
        error={error}
        nothingFound={nothingFound}
        testId="select-application"
      />
      {!single && (
        <button type="button" className={`${tables.linkButton} ${classes.more}`} onClick={() => setOpened(true)} data-testid="several-applications">
          {t("request.severalApplications")}
        </button>
      )}
    </div>
  );
}
