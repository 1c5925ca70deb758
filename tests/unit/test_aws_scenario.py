"""``infra/aws`` says what scenario 5 says, and what ``replicator aws render`` prints (scenarios.md section 5)."""

from __future__ import annotations

import ipaddress
import json
import re
from typing import Any

import yaml

from infra.templates import read
from replicator import settings
from replicator.aws import msk, s3_sink
from replicator.config import awskeys
from replicator.connect.configuration import configuration

TEMPLATES = read.every()
ROOT = read.FOLDER.parents[1]


def of(name: str, resource_name: str) -> Any:
    return TEMPLATES[name]["Resources"][resource_name]["Properties"]


def test_the_network_is_that_of_the_scenario() -> None:
    """10.X.0.0/16 with a public and a private /20 in each of two zones; private ones leave by NAT of their own zone."""
    known = {"SecondOctet": "20"}
    subnets = read.properties(TEMPLATES["network"], "AWS::EC2::Subnet")
    blocks = {name: read.text(given["CidrBlock"], known) for name, given in subnets.items()}
    assert blocks == {
        "PublicSubnetA": "10.20.0.0/20",
        "PrivateSubnetA": "10.20.16.0/20",
        "PublicSubnetB": "10.20.32.0/20",
        "PrivateSubnetB": "10.20.48.0/20",
    }
    vpc = ipaddress.ip_network(read.text(of("network", "Vpc")["CidrBlock"], known))
    assert all(ipaddress.ip_network(each).subnet_of(vpc) for each in blocks.values())  # type: ignore[arg-type]
    routes = {name: of("network", f"PrivateDefaultRoute{name}")["NatGatewayId"]["Ref"] for name in "AB"}
    assert {zone: of("network", nat)["SubnetId"]["Ref"] for zone, nat in routes.items()} == {
        "A": "PublicSubnetA",
        "B": "PublicSubnetB",
    }


def test_refused_traffic_can_be_logged() -> None:
    """The role of the flow log has the rights that AWS asks for at least."""
    [policy] = of("network", "FlowLogRole")["Policies"]
    actions = {one for each in policy["PolicyDocument"]["Statement"] for one in each["Action"]}
    assert actions == {
        "logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogGroups",
        "logs:DescribeLogStreams",
    }  # fmt: skip


def test_kafka_and_database_are_set_as_the_scenario_says() -> None:
    """Topics by themselves, deletable, IAM only; logical replication; five steps at a time."""
    settings = dict(line.split("=") for line in of("streaming", "Settings")["ServerProperties"].split())
    assert (settings["auto.create.topics.enable"], settings["delete.topic.enable"]) == ("true", "true")
    assert of("streaming", "Cluster")["ClientAuthentication"] == {
        "Sasl": {"Iam": {"Enabled": True}, "Scram": {"Enabled": False}},
        "Unauthenticated": {"Enabled": False},
    }
    assert of("database", "Settings")["Parameters"]["rds.logical_replication"] == "1"
    assert of("cluster", "Cluster")["StepConcurrencyLevel"] == 5


def test_no_broker_leads_that_lacks_records() -> None:
    """MSK's default, unlike Kafka's, lets one: what Debezium was told is stored would be gone, without a word."""
    assert "unclean.leader.election.enable=false" in of("streaming", "Settings")["ServerProperties"].split()


def test_brokers_that_iam_would_overrun_are_refused() -> None:
    """scenarios.md section 10: small brokers take one connection of IAM a second."""
    allowed = re.compile(TEMPLATES["streaming"]["Parameters"]["BrokerType"]["AllowedPattern"])
    assert not allowed.fullmatch("kafka.t3.small")
    assert allowed.fullmatch(TEMPLATES["streaming"]["Parameters"]["BrokerType"]["Default"])


def test_the_stages_fit_into_the_application_at_the_same_time() -> None:
    """A scheduler starts them side by side, and EMR Serverless fails a job for whose driver nothing is left."""
    keys = settings.load(ROOT / "conf/aws", "aws", {}).aws
    cores, gigabytes, workers = 0, 0, 0
    for stage in ("bronze", "silver", "gold", "publish"):
        job = keys.job(stage)
        sizes = [(job.driver_cores, job.driver_memory), *[(job.executor_cores, job.executor_memory)] * job.executors]
        cores += sum(each for each, _ in sizes)
        gigabytes += sum(awskeys.worker_gigabytes(memory) for _, memory in sizes)
        workers += len(sizes)
    most = {name: int(given["Default"].split()[0]) for name, given in TEMPLATES["processing"]["Parameters"].items()
            if name.startswith("Most")}  # fmt: skip
    assert (cores <= most["MostCpu"], gigabytes <= most["MostMemory"], 20 * workers <= most["MostDisk"]) == (
        True, True, True
    ), (cores, gigabytes, workers, most)  # fmt: skip


YARN_MEGABYTES = {"m6i.xlarge": 12288, "m6i.2xlarge": 24576, "m6i.4xlarge": 57344}
"""What EMR gives YARN of a machine with 16, 32 and 64 GiB, by its guide."""


def test_every_driver_and_executor_fits_into_a_machine_of_the_cluster() -> None:
    """YARN refuses a job with a larger one at once. One machine holds three of the largest."""
    keys = settings.load(ROOT / "conf/aws", "aws", {}).aws
    of_a_machine = YARN_MEGABYTES[TEMPLATES["cluster"]["Parameters"]["CoreType"]["Default"]]
    jobs = [keys.job(stage) for stage in ("bronze", "silver", "gold", "publish")]
    wanted = [awskeys.worker_gigabytes(each) for job in jobs for each in (job.driver_memory, job.executor_memory)]
    assert 3 * max(wanted) * 1024 <= of_a_machine
    [most] = [
        each["ConfigurationProperties"]["yarn.scheduler.maximum-allocation-mb"]
        for each in of("cluster", "Cluster")["Configurations"]
        if each["Classification"] == "yarn-site"
    ]
    assert int(most) == of_a_machine


def test_who_reaches_brokers_and_database_is_named() -> None:
    """9098 from connectors, jobs, bastion and Kafka UI, 5432 from all but the UI; each rule has its way out."""
    rule = read.properties(TEMPLATES["access"], "AWS::EC2::SecurityGroupIngress").values()
    every = {(each["SourceSecurityGroupId"]["Ref"], each["GroupId"]["Ref"], each["FromPort"]) for each in rule}
    ways = {way for way in every if way[0] != way[1]}
    assert {source for source, target, _ in ways if target == "KafkaGroup"} == {
        "BastionGroup",
        "ConnectGroup",
        "KafkaUiGroup",
        "ProcessingGroup",
    }
    assert {(target, port) for _, target, port in ways if target in ("KafkaGroup", "DatabaseGroup")} == {
        ("KafkaGroup", 9098),
        ("DatabaseGroup", 5432),
    }
    out = read.properties(TEMPLATES["access"], "AWS::EC2::SecurityGroupEgress").values()
    assert every == {
        (each["GroupId"]["Ref"], each["DestinationSecurityGroupId"]["Ref"], each["FromPort"])
        for each in out
        if "DestinationSecurityGroupId" in each
    }


def test_a_stage_writes_its_own_layer_alone() -> None:
    """Roles by prefix: what a role writes, no other stage's role writes, but for the control rows."""
    written = {}
    for stage in ("Bronze", "Silver", "Gold", "Publish"):
        statements = of("roles", f"{stage}Role")["Policies"][0]["PolicyDocument"]["Statement"]
        [write] = [each for each in statements if each["Sid"] == "Write"]
        written[stage] = set(re.findall(r"\$\{LakePrefix\}/(\w+)/\*", json.dumps(write["Resource"]))) - {"_replicator"}
    assert written == {
        "Bronze": {"bronze"},
        "Silver": {"silver", "history", "twins", "dead_letters"},
        "Gold": {"gold"},
        "Publish": set(),
    }


KNOWN = {
    "SourceName": "msk", "Project": "replicator", "AWS::Region": "ap-southeast-2",
    "replicator-DatabaseHost": "db.example", "replicator-DatabaseName": "devdb",
    "replicator-LandingBucket": "replicator-landing", "BootstrapServers": "b-1.example:9098,b-2.example:9098",
    "KafkaUiImage": "image",
}  # fmt: skip


def rendered(resource_name: str) -> dict[str, str]:
    """A connector's configuration in the template, filled in."""
    given = of("connect", resource_name)["ConnectorConfiguration"]
    return {key: read.text(value, KNOWN) for key, value in given.items()}


def test_the_connector_of_the_template_is_the_one_that_render_prints() -> None:
    """That of the source's file, wherever it stands."""
    source = settings.load(ROOT / "conf/aws", "aws", {"DATABASE_HOST": "db.example"}).source("msk")
    assert source.connector is not None
    assert rendered("Source") == msk.connector_config(configuration(source.connector))


def test_the_sink_of_the_template_is_the_one_that_render_prints() -> None:
    """Divided by customer and order; closed after a minute or with 50 records."""
    source = settings.load(ROOT / "conf/aws", "aws", {}).source("msk")
    tables = {table.table: table.partition_by for table in source.tables}
    made = s3_sink.connector_config("msk", tables, "replicator-landing", "cdc-events", "ap-southeast-2")
    assert rendered("Sink") == msk.connector_config(made)
    assert "PARTITIONBY customer_id, order_id STOREAS `JSON`" in made["connect.s3.kcql"]
    assert made["connect.s3.kcql"].endswith("PROPERTIES('flush.interval'=60, 'flush.count'=50)")


def test_the_sink_may_write_where_it_writes() -> None:
    """Its objects, its index, and the objects that it has not committed yet, which it copies from a folder beside."""
    statements = of("connect", "SinkRole")["Policies"][0]["PolicyDocument"]["Statement"]
    [write] = [each for each in statements if each["Sid"] == "WriteObjects"]
    places = {each["Fn::Sub"][0].partition("${B}/")[2] for each in write["Resource"]}
    assert places == {"cdc-events/*", ".indexes/*", ".temp-upload/*"}


def test_what_the_sink_remembers_stays() -> None:
    """It writes its offsets below .indexes only over what it wrote before: one that is gone would stop it."""
    rules = of("lake", "LandingBucket")["LifecycleConfiguration"]["Rules"]
    assert {each.get("Prefix") for each in rules if "ExpirationInDays" in each} == {"cdc-events/", ".temp-upload/"}


def test_a_cluster_may_use_the_key_of_its_disks() -> None:
    """EC2 takes it from EMR's own role, which has to be allowed what EBS asks for; it hands it on to EC2 alone."""
    policies = of("roles", "ClusterServiceRole")["Policies"]
    given = [each for policy in policies for each in policy["PolicyDocument"]["Statement"]]
    disks = [each for each in given if any(str(one).startswith("kms:") for one in read.listed(each["Action"]))]
    assert {one for each in disks for one in each["Action"]} == {
        "kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext", "kms:ReEncrypt*",
    }  # fmt: skip
    [grant] = [each for each in disks if "kms:CreateGrant" in each["Action"]]
    assert grant["Condition"] == {"Bool": {"kms:GrantIsForAWSResource": "true"}}


def test_the_worker_of_the_template_is_the_one_that_render_prints() -> None:
    """The same for converters and the provider of secrets."""
    text = read.text(of("connect", "Worker")["PropertiesFileContent"], KNOWN)
    assert text == msk.properties(msk.worker_config("ap-southeast-2"))


def test_a_connector_that_is_made_anew_goes_on_where_the_old_one_ended() -> None:
    """MSK Connect gives each connector a topic of its own for its place, unless the worker names one, which the
    connector's role has to let it use.
    """
    topic = msk.worker_config("ap-southeast-2")["offset.storage.topic"]
    statements = of("connect", "SourceRole")["Policies"][0]["PolicyDocument"]["Statement"]
    [kept] = [each for each in statements if each["Sid"] == "KeepConnectsOwnTopics"]
    [resource] = kept["Resource"]
    assert topic.startswith(resource["Fn::Sub"][0].removeprefix("${Arn}/").removesuffix("*"))


def test_kafka_can_be_raised() -> None:
    """CloudFormation makes a configuration for other versions anew, which it does not under a name that is taken."""
    assert "KafkaVersionsList" not in of("streaming", "Settings")


def test_kafka_ui_of_the_template_is_the_one_that_render_prints() -> None:
    """Its environment, and the image that the local stack has; its port is the machine's own."""
    script = read.text(of("ui", "Machine")["UserData"], KNOWN)
    assert msk.properties(msk.kafka_ui_environment(KNOWN["BootstrapServers"])) in script
    assert "--publish 127.0.0.1:8080:8080" in script
    compose = yaml.safe_load((ROOT / "infra/compose.yaml").read_text(encoding="utf-8"))
    assert TEMPLATES["ui"]["Parameters"]["KafkaUiImage"]["Default"] == compose["services"]["kafka-ui"]["image"]


def test_revenue_of_the_dashboard_is_a_calculated_field_over_columns_that_gold_has() -> None:
    """scenarios.md section 4: quantity x unit_price x (1 - discount); a pie and a scatter plot."""
    given = of("dashboard", "Items")
    columns = {each["Name"] for each in given["PhysicalTableMap"]["items"]["RelationalTable"]["InputColumns"]}
    model = yaml.safe_load((ROOT / "conf/aws/models/order_items.yaml").read_text(encoding="utf-8"))
    assert columns <= set(model["columns"])
    [made] = given["LogicalTableMap"]["items"]["DataTransforms"]
    [field] = made["CreateColumnsOperation"]["Columns"]
    assert (field["ColumnName"], set(re.findall(r"\{(\w+)\}", field["Expression"])) <= columns) == ("revenue", True)
    assert (
        eval(re.sub(r"[{}]", "", field["Expression"]), {"quantity": 12, "unit_price": 14, "discount": 0.25}) == 126  # noqa: S307
    )
    [sheet] = of("dashboard", "Analysis")["Definition"]["Sheets"]
    assert [next(iter(each)) for each in sheet["Visuals"]] == ["PieChartVisual", "ScatterPlotVisual"]


def test_there_is_an_alarm_for_each_trouble() -> None:
    """A connector that failed or stands still, a sink that lags, a slot that grows, jobs that fail or do not come."""
    alarms = read.properties(TEMPLATES["alarms"], "AWS::CloudWatch::Alarm")
    metrics = {each.get("MetricName") for each in alarms.values()} - {None}
    assert metrics == {"ErroredTaskCount", "RunningTaskCount", "SumOffsetLag", "TransactionLogsDiskUsage"}
    assert all(each["AlarmActions"] == [{"Ref": "Alarms"}] for each in alarms.values())
    events = read.properties(TEMPLATES["alarms"], "AWS::Events::Rule")
    told = {name: each["EventPattern"]["detail"]["state"] for name, each in events.items()}
    assert "FAILED" in told["JobFailed"]
    assert "FAILED" in told["StepFailed"]


def test_alarms_are_about_our_jobs_alone() -> None:
    """In an account with others, whose jobs that succeed would hide that none of ours does."""
    events = read.properties(TEMPLATES["alarms"], "AWS::Events::Rule")
    ours = {name: each["EventPattern"]["detail"] for name, each in events.items()}
    wanted = [{"Ref": "EmrId"}]
    assert ours["JobFailed"]["applicationId"] == ours["StepFailed"]["clusterId"] == wanted
    assert ours["JobSucceeded"]["$or"] == [{"applicationId": wanted}, {"clusterId": wanted}]


def test_events_may_be_mailed() -> None:
    """EventBridge does not tell SNS or KMS whose rule it is: an allowance with a condition would never hold for it."""
    policies = of("alarms", "Key")["KeyPolicy"], of("alarms", "AlarmsPolicy")["PolicyDocument"]
    for policy in policies:
        services = {
            service: "Condition" in each
            for each in policy["Statement"]
            if each["Effect"] == "Allow"
            for service in read.listed(each["Principal"].get("Service", []))
        }
        assert services == {"cloudwatch.amazonaws.com": True, "events.amazonaws.com": False}
