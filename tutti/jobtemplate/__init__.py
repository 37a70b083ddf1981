"""`tutti jobtemplate`: JobTemplates of flow.volcano.sh."""
