flows --store sqlite:missing.db
