"""``infra/aws``: every template is one that AWS would take, keeps our rules, and finds what it imports."""

from __future__ import annotations

import copy
import json
import re
import shlex
from functools import cache
from typing import Any

import pytest
from cfnlint.config import ConfigMixIn
from cfnlint.decode import decode_str
from cfnlint.runner import Runner

from infra.templates import read, rules
from tests import readme

EVERY = read.every()


@cache
def linter() -> Runner:
    """cfn-lint with all of its rules, which take longer to be loaded than to look at a template."""
    return Runner(ConfigMixIn(regions=["us-east-1"], include_checks=["I"]))


def found(text: str) -> list[str]:
    """What cfn-lint has to say, hints included."""
    template, problems = decode_str(text)
    told = problems or linter().validate_template(template)
    return [f"{each.linenumber}: {each.rule.id} {each.message}" for each in told]


@pytest.mark.parametrize("name", EVERY)
def test_cfn_lint_finds_nothing(name: str) -> None:
    """Types, properties, values, references and functions are those of CloudFormation."""
    assert found((read.FOLDER / f"{name}.yaml").read_text(encoding="utf-8")) == []


def test_cfn_lint_finds_what_is_wrong() -> None:
    """A misspelt property and a reference to nothing: silence above is not deafness."""
    text = (read.FOLDER / "image.yaml").read_text(encoding="utf-8")
    told = "".join(
        found(text.replace("ImageTagMutability:", "TagMutability:").replace("!GetAtt Images.", "!GetAtt Image."))
    )
    assert "E3002" in told
    assert "E6101" in told


def test_every_template_of_the_folder_is_looked_at() -> None:
    """A new file has a place in the order of stacks."""
    assert {file.stem for file in read.FOLDER.glob("*.yaml")} == set(EVERY)


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_every_template_keeps_the_rule(rule: rules.Rule) -> None:
    """The rules of ``infra/templates/rules.py``, one by one."""
    assert [f"{name}: {each}" for name, template in EVERY.items() for each in rule(template)] == []


GONE = object()
"""For what is left out."""

SOURCE_CONFIG = "Source/Properties/ConnectorConfiguration"
SEEDED: list[tuple[str, str, str, Any]] = [
    ("no_star", "roles", "GoldRole/Properties/Policies/0/PolicyDocument/Statement/0/Resource", "*"),
    ("no_star", "roles", "GoldRole/Properties/Policies/0/PolicyDocument/Statement/0/Action", "s3:*"),
    ("no_star", "roles", "SilverRole/Properties/Policies/0/PolicyDocument/Statement/1/Resource", ["*"]),
    ("no_star", "image", "Images/Properties/RepositoryPolicyText/Statement/0/Principal", "*"),
    ("encrypted", "lake", "LakeBucket/Properties/BucketEncryption", GONE),
    ("encrypted", "lake", "Key/Properties/EnableKeyRotation", False),
    ("encrypted", "database", "Cluster/Properties/StorageEncrypted", False),
    ("encrypted", "access", "Bastion/Properties/BlockDeviceMappings/0/Ebs/Encrypted", False),
    ("encrypted", "alarms", "Alarms/Properties/KmsMasterKeyId", GONE),
    ("encrypted", "catalog", "Workgroup/Properties/WorkGroupConfiguration/ResultConfiguration", GONE),
    ("encrypted", "cluster", "Cluster/Properties/SecurityConfiguration", GONE),
    ("by_tls", "lake", "LandingBucketPolicy", GONE),
    ("by_tls", "streaming", "Cluster/Properties/EncryptionInfo/EncryptionInTransit/ClientBroker", "TLS_PLAINTEXT"),
    ("by_tls", "database", "Settings/Properties/Parameters/rds.force_ssl", "0"),
    ("by_tls", "connect", f"{SOURCE_CONFIG}/database.sslmode", "prefer"),
    ("by_tls", "connect", "Sink/Properties/KafkaClusterEncryptionInTransit/EncryptionType", "PLAINTEXT"),
    ("by_tls", "cluster", "Cluster/Properties/Configurations", []),
    ("by_tls", "dashboard", "Source/Properties/SslProperties/DisableSsl", True),
    ("private", "access", "DatabaseFromBastion/Properties/CidrIp", "0.0.0.0/0"),
    ("private", "access", "KafkaGroup/Properties/SecurityGroupIngress", [{"CidrIpv6": "::/0"}]),
    ("private", "access", "Bastion/Properties/NetworkInterfaces/0/AssociatePublicIpAddress", True),
    ("private", "access", "Bastion/Properties/MetadataOptions", GONE),
    ("private", "database", "Instance/Properties/PubliclyAccessible", True),
    ("private", "network", "PublicSubnetA/Properties/MapPublicIpOnLaunch", True),
    ("private", "lake", "LogBucket/Properties/PublicAccessBlockConfiguration/BlockPublicPolicy", False),
    ("private", "streaming", "Cluster/Properties/BrokerNodeGroupInfo/ConnectivityInfo", GONE),
    ("no_secret", "database", "Cluster/Properties/MasterUserPassword", "hunter22"),
    ("no_secret", "database", "../Parameters/MasterPassword", {"Type": "String"}),
    ("no_secret", "connect", f"{SOURCE_CONFIG}/database.password", "x"),
    ("no_secret", "ui", "Machine/Properties/UserData", "export KEY=AKIA" + "ABCDEFGHIJKLMNOP"),
    ("kept", "database", "Cluster/Properties/DeletionProtection", False),
    ("kept", "lake", "LakeBucket/DeletionPolicy", "Delete"),
    ("kept", "streaming", "Cluster/UpdateReplacePolicy", GONE),
    ("kept", "cluster", "Cluster/Properties/Instances/TerminationProtected", False),
    ("tagged", "network", "Vpc/Properties/Tags", GONE),
    ("tagged", "streaming", "Cluster/Properties/Tags", GONE),
    ("tagged", "vpn", "Endpoint/Properties/TagSpecifications", GONE),
    ("known_ports", "access", "KafkaFromConnect/Properties/FromPort", 9092),
    ("known_ports", "access", "DatabaseFromConnect/Properties/ToPort", 65535),
    ("known_ports", "access", "KafkaFromBastion/Properties/SourceSecurityGroupId", GONE),
    ("retained", "streaming", "BrokerLog/Properties/RetentionInDays", GONE),
    ("own_account", "roles", "GoldRole/Properties/AssumeRolePolicyDocument/Statement/0/Condition", GONE),
]


def changed(name: str, path: str, value: Any) -> read.Template:
    """A template with another value at a place below its resources."""
    template = copy.deepcopy(dict(EVERY[name]))
    *way, last = (int(each) if each.isdigit() else each for each in path.split("/"))
    at: Any = template if way[:1] == [".."] else template["Resources"]
    for step in (each for each in way if each != ".."):
        at = at[step]
    if value is GONE:
        del at[last]
    else:
        at[last] = value
    return template


@pytest.mark.parametrize(("rule", "name", "path", "value"), SEEDED, ids=[f"{one[0]}-{one[2]}" for one in SEEDED])
def test_a_seeded_violation_is_caught_by_its_rule(rule: str, name: str, path: str, value: Any) -> None:
    """Each mistake is told by the rule that is there for it: once it is made, and not before."""
    holds = getattr(rules, rule)
    assert list(holds(EVERY[name])) == []
    assert list(holds(changed(name, path, value))) != []


def test_every_rule_is_tried_with_a_mistake() -> None:
    """A rule that nothing breaks is no rule."""
    assert {rule for rule, *_ in SEEDED} == {rule.__name__ for rule in rules.RULES}


def imports(value: Any) -> list[str]:
    """The exports that a template asks for, without the project's name."""
    return re.findall(r'"Fn::ImportValue": \{"Fn::Sub": "\$\{Project\}-(\w+)"\}', json.dumps(value))


def exports(template: read.Template) -> list[str]:
    given = [each["Export"]["Name"]["Fn::Sub"] for each in template.get("Outputs", {}).values() if "Export" in each]
    return [each.removeprefix("${Project}-") for each in given]


def test_what_a_stack_imports_one_before_it_exports() -> None:
    """In the order in which docs/aws.md makes them, each import is there already; of each export there is one."""
    made: list[str] = []
    order = {name: exports(EVERY[name]) for name in read.ORDER}
    for name in read.ORDER:
        assert (name, set(imports(EVERY[name])) - set(made)) == (name, set())
        made += order[name]
    for name, behind in read.ASIDE.items():
        before = read.ORDER[: read.ORDER.index(behind) + 1] if behind else ()
        there = {each for one in before for each in order[one]}
        assert (name, set(imports(EVERY[name])) - there) == (name, set())
        made += exports(EVERY[name])
    assert sorted(made) == sorted(set(made))


def test_an_import_of_nothing_would_be_noticed() -> None:
    """The other side of the test above."""
    asked = {"Resources": {"A": {"Fn::ImportValue": {"Fn::Sub": "${Project}-VpcIdd"}}}}
    assert not set(imports(asked)) <= {each for template in EVERY.values() for each in exports(template)}


def test_every_stack_says_where_it_stands_in_the_order() -> None:
    """The number in a description is its place in ``ORDER``."""
    told = [re.match(r"replicator (\d+) of (\d+), (\w+)", EVERY[name]["Description"]) for name in read.ORDER]
    assert [each.groups() for each in told if each] == [
        (str(at), str(len(read.ORDER)), name) for at, name in enumerate(read.ORDER, 1)
    ]


def deployed() -> dict[str, list[str]]:
    """The stacks that docs/aws.md makes, in its order, with the words of their commands."""
    page = "docs/aws.md"
    every = [shlex.split(one) for section in readme.sections(page) for one in readme.commands(section, page)]
    ours = [words for words in every if words[:3] == ["aws", "cloudformation", "deploy"]]
    return {words[words.index("--stack-name") + 1].removeprefix("replicator-"): words for words in ours}


def test_the_runbook_makes_every_stack_in_an_order_in_which_it_can_be_made() -> None:
    """Each after those whose exports it imports; the VPN alone is left to the reader."""
    made: set[str] = set()
    for name in deployed():
        assert (name, set(imports(EVERY[name])) - made) == (name, set())
        made |= set(exports(EVERY[name]))
    assert set(EVERY) - set(deployed()) == {"vpn"}


@pytest.mark.parametrize("name", sorted(set(EVERY) - {"vpn"}))
def test_the_runbook_gives_a_stack_what_it_asks_for(name: str) -> None:
    """Its template, each parameter without a default and no other, and leave to make roles where it makes some."""
    words = deployed()[name]
    assert words[words.index("--template-file") + 1] == f"infra/aws/{name}.yaml"
    given = {each.partition("=")[0] for each in words if "=$" in each}
    parameters = EVERY[name].get("Parameters", {})
    assert given == {key for key, each in parameters.items() if "Default" not in each}
    roles = read.properties(EVERY[name], "AWS::IAM::Role", "AWS::IAM::InstanceProfile")
    named = any("RoleName" in each or "InstanceProfileName" in each for each in roles.values())
    wanted = {"CAPABILITY_NAMED_IAM"} if named else {"CAPABILITY_IAM"} if roles else set()
    assert {each for each in words if each.startswith("CAPABILITY")} == wanted


@pytest.mark.parametrize("name", EVERY)
def test_policies_of_one_role_have_different_names(name: str) -> None:
    """IAM knows a policy within a role by its name alone; cfn-lint lets two with one name pass."""
    roles = read.properties(EVERY[name], "AWS::IAM::Role")
    named = {role: [each["PolicyName"] for each in given.get("Policies", [])] for role, given in roles.items()}
    assert {role for role, every in named.items() if len(set(every)) != len(every)} == set()
