import { Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { useReviewProposal } from "../../api/flow-mutations";
import type { Resource } from "../../api/types";
import { useZone } from "../../lib/use-zone";
import { instantOf } from "../../lib/zone";
import { FormDialog } from "../FormDialog";
import { useToast } from "../toast-context";

interface Props {
  resource: Resource;
  /** The end of the flows that the reader saw. */
  until: string;
  onClose: () => void;
}

/** ReviewedDialog records that the observed clients of a resource were reviewed, with an optional date of the next review. */
export function ReviewedDialog({ resource, until, onClose }: Props) {
  const { t } = useTranslation();
  const toast = useToast();
  const zone = useZone();
  const review = useReviewProposal(resource.id);
  const [wall, setWall] = useState("");
  const [invalid, setInvalid] = useState(false);

  const submit = () => {
    const next = instantOf(wall, zone);
    const wrong = wall !== "" && (next === undefined || next.getTime() <= Date.now());
    setInvalid(wrong);
    if (wrong) return false;
    review.mutate(
      { reviewed: true, until, ...(next ? { nextReview: next.toISOString() } : {}) },
      {
        onSuccess: () => {
          toast(t("proposal.review.saved"));
          onClose();
        },
      },
    );
    return true;
  };

  return (
    <FormDialog
      title={t("proposal.review.title", { resource: resource.title })}
      testId="reviewed-dialog"
      submit={{ label: t("proposal.review.confirm"), testId: "reviewed-confirm", onSubmit: submit }}
      pending={review.isPending}
      error={review.error}
      values={wall}
      onClose={onClose}
    >
      {(fieldError) => (
        <>
          <Text size="sm">{t("proposal.review.text")}</Text>
          <TextInput
            type="datetime-local"
            label={t("proposal.review.nextLabel")}
            description={t("proposal.review.nextHint", { zone })}
            value={wall}
            onChange={(event) => {
              setWall(event.currentTarget.value);
              setInvalid(false);
            }}
            error={invalid ? t("proposal.review.invalid") : fieldError("nextReview")}
            data-autofocus
            data-testid="next-review"
          />
        </>
      )}
    </FormDialog>
  );
}
