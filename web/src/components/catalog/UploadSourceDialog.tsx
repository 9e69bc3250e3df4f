import { Group, SegmentedControl, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { usePreviewSync } from "../../api/governance";
import type { Entity, SyncPreview } from "../../api/types";
import { entityKinds } from "../../lib/entity";
import { FileTextField } from "../FileTextField";
import { FormDialog } from "../FormDialog";

const formats = ["csv", "backstage"] as const;

interface Props {
  onPreview: (source: string, preview: SyncPreview) => void;
  onClose: () => void;
}

/** UploadSourceDialog reads entities from a file into a source of their own. It only requests the preview; the sync is applied afterwards. */
export function UploadSourceDialog({ onPreview, onClose }: Props) {
  const { t } = useTranslation();
  const [source, setSource] = useState("");
  const [format, setFormat] = useState<(typeof formats)[number]>("csv");
  const [kind, setKind] = useState<Entity["kind"]>("application");
  const [content, setContent] = useState("");
  const [tried, setTried] = useState(false);
  const preview = usePreviewSync();

  const take = (text: string, name?: string) => {
    setContent(text);
    if (name && /\.ya?ml$/i.test(name)) setFormat("backstage");
    if (name && /\.csv$/i.test(name)) setFormat("csv");
  };
  const submit = () => {
    setTried(true);
    const id = source.trim();
    if (id === "" || content.trim() === "") return false;
    preview.mutate({ source: id, body: { format, content, ...(format === "csv" ? { kind } : {}) } }, { onSuccess: (found) => onPreview(id, found) });
    return true;
  };

  return (
    <FormDialog
      title={t("sources.uploadTitle")}
      size="lg"
      testId="catalog-upload-form"
      submit={{ label: t("sources.preview"), testId: "upload-preview", onSubmit: submit }}
      pending={preview.isPending}
      error={preview.error}
      values={{ source, format, kind, content }}
      onClose={onClose}
    >
      {(fieldError) => (
        <>
          <TextInput label={t("sources.uploadName")} description={t("sources.uploadNameHint")} required maxLength={63} value={source} onChange={(event) => setSource(event.currentTarget.value)} error={(tried && source.trim() === "" && t("sources.error.name")) || fieldError("source")} data-autofocus data-testid="upload-source" />
          <Group gap="sm" align="flex-end">
            <SegmentedControl aria-label={t("sources.format")} data={formats.map((each) => ({ value: each, label: t(`sources.formats.${each}`) }))} value={format} onChange={(next) => setFormat(next === "backstage" ? "backstage" : "csv")} />
            {format === "csv" && <Select label={t("sources.rows")} allowDeselect={false} data={entityKinds.map((each) => ({ value: each, label: t(`entities.kinds.${each}`) }))} value={kind} onChange={(next) => setKind(entityKinds.find((each) => each === next) ?? kind)} data-testid="upload-kind" />}
          </Group>
          <FileTextField label={t("sources.content")} description={t("sources.uploadHint")} accept=".csv,.yaml,.yml,text/csv" choose={t("sources.file")} value={content} onChange={take} error={(tried && content.trim() === "" && t("sources.error.content")) || fieldError("content")} testId="catalog-content" />
        </>
      )}
    </FormDialog>
  );
}
