"""Rules of our own about templates: each takes one and tells what breaks it, one sentence each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

from infra.templates.read import Template, listed, properties, resources

Rule = Callable[[Template], Iterator[str]]

PORTS = {443, 5432, 9098, 9443}
"""AWS's services, PostgreSQL, Kafka with IAM, and EMR's own way into private subnets."""

NO_RESOURCES = {"logs:DescribeLogGroups"}
"""Actions that take no resource, so that ``*`` says nothing."""

_WORLD = {"0.0.0.0/0", "::/0"}
_SECRET = re.compile(r"password|secret[_.]?(?:key|string)$|access[_.]?key|token", re.IGNORECASE)
_KEY_ID = re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")
_KEPT = {
    "AWS::S3::Bucket": "Retain", "AWS::MSK::Cluster": "Retain", "AWS::ECR::Repository": "Retain",
    "AWS::RDS::DBCluster": "Snapshot", "AWS::Glue::Database": "Retain",
}  # fmt: skip
_SOURCE_ACCOUNT = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
_SET = object()
"""Any value, but one."""

Wanted = Mapping[str, tuple[str, Any]]
"""By type of resource: the path to a property, and the value that it must have."""

_ENCRYPTED: Wanted = {
    "AWS::S3::Bucket": ("BucketEncryption.ServerSideEncryptionConfiguration", _SET),
    "AWS::RDS::DBCluster": ("StorageEncrypted", True),
    "AWS::SNS::Topic": ("KmsMasterKeyId", _SET),
    "AWS::ECR::Repository": ("EncryptionConfiguration.EncryptionType", "KMS"),
    "AWS::Athena::WorkGroup": ("WorkGroupConfiguration.ResultConfiguration.EncryptionConfiguration", _SET),
    "AWS::EMR::Cluster": ("SecurityConfiguration", _SET),
    "AWS::EMR::SecurityConfiguration": (
        "SecurityConfiguration.EncryptionConfiguration.EnableAtRestEncryption", True
    ),
    "AWS::KMS::Key": ("EnableKeyRotation", True),
}  # fmt: skip
_BY_TLS: Wanted = {
    "AWS::MSK::Cluster": ("EncryptionInfo.EncryptionInTransit", {"ClientBroker": "TLS", "InCluster": True}),
    "AWS::KafkaConnect::Connector": ("KafkaClusterEncryptionInTransit.EncryptionType", "TLS"),
    "AWS::RDS::DBClusterParameterGroup": ("Parameters", {"rds.logical_replication": "1", "rds.force_ssl": "1"}),
    "AWS::QuickSight::DataSource": ("SslProperties.DisableSsl", False),
}
_PRIVATE: Wanted = {
    "AWS::RDS::DBInstance": ("PubliclyAccessible", False),
    "AWS::EC2::Subnet": ("MapPublicIpOnLaunch", False),
    "AWS::MSK::Cluster": ("BrokerNodeGroupInfo.ConnectivityInfo.PublicAccess.Type", "DISABLED"),
    "AWS::EC2::Instance": ("MetadataOptions.HttpTokens", "required"),
    "AWS::S3::Bucket": (
        "PublicAccessBlockConfiguration",
        {
            "BlockPublicAcls": True,
            "BlockPublicPolicy": True,
            "IgnorePublicAcls": True,
            "RestrictPublicBuckets": True,
        },
    ),
}


def statements(template: Template) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each statement of each policy, with the name of its resource. Trust is told by ``trust``, keys by ``keys``."""
    for name, given in properties(template).items():
        documents = [each["PolicyDocument"] for each in given.get("Policies", [])]
        documents += [given[key] for key in ("PolicyDocument", "RepositoryPolicyText") if key in given]
        for document in (each for each in documents if isinstance(each, Mapping) and "Statement" in each):
            for statement in listed(document["Statement"]):
                yield name, statement


def no_star(template: Template) -> Iterator[str]:
    """Nobody may do everything, or anything to everything, but for actions that know no resources."""
    for name, statement in statements(template):
        if statement["Effect"] != "Allow":
            continue
        actions = [str(each) for each in listed(statement.get("Action", "*"))]
        if any(each == "*" or each.endswith(":*") for each in actions):
            yield f"{name}: allows {', '.join(actions)}"
        if "*" in listed(statement.get("Resource", [])) and not set(actions) <= NO_RESOURCES:
            yield f"{name}: allows {', '.join(actions)} on everything"
        if "*" in (statement.get("Principal"), *_principals(statement)):
            yield f"{name}: allows everybody {', '.join(actions)}"


def encrypted(template: Template) -> Iterator[str]:
    """What lies somewhere is encrypted there."""
    yield from _broken(template, _ENCRYPTED)
    for name, given in properties(template, "AWS::EC2::Instance").items():
        if not all(_at(each, "Ebs", "Encrypted") is True for each in given.get("BlockDeviceMappings", [{}])):
            yield f"{name}: its disk is not encrypted"


def by_tls(template: Template) -> Iterator[str]:
    """What goes over a network goes by TLS."""
    yield from _broken(template, _BY_TLS)
    for name, given in properties(template, "AWS::KafkaConnect::Connector").items():
        if _at(given, "ConnectorConfiguration", "database.sslmode") not in (None, "require", "verify-full"):
            yield f"{name}: the connector talks to its database without TLS"
    for name, given in properties(template, "AWS::EMR::Cluster").items():
        asked = [
            _at(each, "ConfigurationProperties", "spark.network.crypto.enabled") for each in given["Configurations"]
        ]
        if "true" not in asked:
            yield f"{name}: machines talk in the clear"
    yield from _open_to_plain(template, "AWS::S3::Bucket", "AWS::S3::BucketPolicy", "Bucket")
    yield from _open_to_plain(template, "AWS::SNS::Topic", "AWS::SNS::TopicPolicy", "Topics")


def private(template: Template) -> Iterator[str]:
    """Nothing can be reached from outside of the VPC."""
    yield from _broken(template, _PRIVATE)
    for name, given in properties(template, "AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupIngress").items():
        for rule in (given, *given.get("SecurityGroupIngress", [])):
            if {str(rule.get("CidrIp")), str(rule.get("CidrIpv6"))} & _WORLD:
                yield f"{name}: lets the world in"
    for name, given in properties(template, "AWS::EC2::Instance").items():
        cards = given.get("NetworkInterfaces", [{}])
        if not all(_at(each, "AssociatePublicIpAddress") is False for each in cards):
            yield f"{name}: may get a public address"


def no_secret(template: Template) -> Iterator[str]:
    """Passwords are made by AWS or referred to; none is written down, and none is a parameter."""
    for name in template.get("Parameters", {}):
        if _SECRET.search(name):
            yield f"parameter {name}: a secret that passes through whoever makes the stack"
    for path, value in _texts(template.get("Resources", {})):
        if _KEY_ID.search(value):
            yield f"{'.'.join(path)}: a key of AWS"
        if (
            _SECRET.search(path[-1])
            and path[-1] not in ("HttpTokens", "GenerateStringKey")
            and not value.startswith("${")
        ):
            yield f"{'.'.join(path)}: a secret in the clear"


def kept(template: Template) -> Iterator[str]:
    """Deleting a stack, or a mistake in it, takes no data away."""
    for name, resource in resources(template, *_KEPT).items():
        wanted = _KEPT[resource["Type"]]
        if {resource.get("DeletionPolicy"), resource.get("UpdateReplacePolicy")} != {wanted}:
            yield f"{name}: goes with its stack; DeletionPolicy and UpdateReplacePolicy are not {wanted}"
    for name, given in properties(template, "AWS::RDS::DBCluster").items():
        if given.get("DeletionProtection") is not True:
            yield f"{name}: is not protected from deletion"
    for name, given in properties(template, "AWS::EMR::Cluster").items():
        if _at(given, "Instances", "TerminationProtected") is not True:
            yield f"{name}: is not protected from termination"


def tagged(template: Template) -> Iterator[str]:
    """What can be tagged says which project it belongs to, so that costs can be told apart."""
    wanted = {"Key": "project", "Value": {"Ref": "Project"}}
    for name, resource in resources(template).items():
        schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", resource["Type"]).schema
        given = resource.get("Properties", {})
        if "Tags" in schema["properties"]:
            tags = given.get("Tags", [])
            if wanted not in listed(tags) and tags != {"project": {"Ref": "Project"}}:
                yield f"{name}: has no tag `project`"
        elif "TagSpecifications" in schema["properties"] and "project" not in str(given.get("TagSpecifications")):
            yield f"{name}: has no tag `project`"


def known_ports(template: Template) -> Iterator[str]:
    """Groups let in one port of those that are known, from another group; all ports are for a group's own members."""
    for name, rule in properties(template, "AWS::EC2::SecurityGroupIngress").items():
        source = rule.get("SourceSecurityGroupId")
        if source is None:
            yield f"{name}: lets in addresses and not a group"
        elif source != rule["GroupId"] and (
            rule.get("FromPort") != rule.get("ToPort") or rule["FromPort"] not in PORTS
        ):
            yield f"{name}: lets in {rule.get('FromPort')}-{rule.get('ToPort')}"
    for name, given in properties(template, "AWS::EC2::SecurityGroup").items():
        if given.get("SecurityGroupIngress"):
            yield f"{name}: lets in by itself; write a rule of its own, from group to group"


def retained(template: Template) -> Iterator[str]:
    """Logs end some day."""
    for name, given in properties(template, "AWS::Logs::LogGroup").items():
        if not given.get("RetentionInDays"):
            yield f"{name}: is kept for ever"


def own_account(template: Template) -> Iterator[str]:
    """A service that takes a role does so for this account. EC2 takes it for an instance, which is of it."""
    for name, given in properties(template, "AWS::IAM::Role").items():
        for statement in given["AssumeRolePolicyDocument"]["Statement"]:
            service = _at(statement, "Principal", "Service")
            if service not in (None, "ec2.amazonaws.com") and statement.get("Condition") != _SOURCE_ACCOUNT:
                yield f"{name}: {service} may take it for anybody's account"


RULES: tuple[Rule, ...] = (
    no_star, encrypted, by_tls, private, no_secret, kept, tagged, known_ports, retained, own_account,
)  # fmt: skip


def _principals(statement: Mapping[str, Any]) -> list[Any]:
    given = statement.get("Principal")
    return [one for each in given.values() for one in listed(each)] if isinstance(given, Mapping) else []


def _refuses_plain(statement: Mapping[str, Any]) -> bool:
    condition = {"Bool": {"aws:SecureTransport": "false"}}
    return bool(statement["Effect"] == "Deny" and statement["Principal"] == "*" and statement["Condition"] == condition)


def _broken(template: Template, wanted: Wanted) -> Iterator[str]:
    for kind, (path, value) in wanted.items():
        for name, given in properties(template, kind).items():
            found = _at(given, *path.split("."))
            if found != value and (value is not _SET or not found):
                yield f"{name}: {path} is not {'set' if value is _SET else value}"


def _open_to_plain(template: Template, kind: str, policy: str, target: str) -> Iterator[str]:
    """Resources of which no policy refuses what comes without TLS."""
    closed = {name for name, statement in statements(template) if _refuses_plain(statement)}
    held = [listed(given[target]) for name, given in properties(template, policy).items() if name in closed]
    for name in resources(template, kind):
        if not any({"Ref": name} in each for each in held):
            yield f"{name}: no policy refuses what comes without TLS"


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _texts(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every literal text, and the keys that lead to it."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            if key not in ("Ref", "Fn::GetAtt", "Fn::ImportValue", "Fn::Sub", "Fn::Join"):
                yield from _texts(each, (*path, str(key)))
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, path)
    elif isinstance(value, str):
        yield path, value
