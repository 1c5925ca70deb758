"""What is held against ``infra/aws``: reading the templates, and rules that cfn-lint does not know."""
