BEGIN TRANSACTION;
CREATE TABLE about (
	version INTEGER NOT NULL
);
INSERT INTO "about" VALUES(2);
CREATE TABLE names (
	question INTEGER NOT NULL, 
	kind SMALLINT NOT NULL, 
	code INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	PRIMARY KEY (question, kind, code)
);
INSERT INTO "names" VALUES(0,0,0,'t1');
INSERT INTO "names" VALUES(0,1,0,'ann');
INSERT INTO "names" VALUES(0,2,0,'good');
INSERT INTO "names" VALUES(0,1,1,'bob');
INSERT INTO "names" VALUES(0,2,1,'bad');
INSERT INTO "names" VALUES(0,0,1,'t2');
INSERT INTO "names" VALUES(0,0,2,'t3');
INSERT INTO "names" VALUES(0,1,2,'cy');
INSERT INTO "names" VALUES(1,0,0,'t1');
INSERT INTO "names" VALUES(1,0,1,'t2');
INSERT INTO "names" VALUES(1,1,0,'ann');
INSERT INTO "names" VALUES(1,2,0,'x');
INSERT INTO "names" VALUES(1,2,1,'ä
b');
INSERT INTO "names" VALUES(0,0,3,'t4');
INSERT INTO "names" VALUES(0,0,4,'t5');
INSERT INTO "names" VALUES(2,0,0,'1');
INSERT INTO "names" VALUES(2,0,1,'2');
INSERT INTO "names" VALUES(2,0,2,'3');
INSERT INTO "names" VALUES(2,0,3,'4');
INSERT INTO "names" VALUES(3,0,0,'1');
INSERT INTO "names" VALUES(3,0,1,'2');
INSERT INTO "names" VALUES(3,0,2,'3');
INSERT INTO "names" VALUES(3,0,3,'4');
INSERT INTO "names" VALUES(4,0,0,'1');
INSERT INTO "names" VALUES(4,0,1,'2');
INSERT INTO "names" VALUES(4,0,2,'3');
INSERT INTO "names" VALUES(4,0,3,'4');
INSERT INTO "names" VALUES(2,1,0,'1');
INSERT INTO "names" VALUES(2,2,0,'good');
INSERT INTO "names" VALUES(3,1,0,'1');
INSERT INTO "names" VALUES(3,2,0,'food|price');
INSERT INTO "names" VALUES(4,1,0,'1');
INSERT INTO "names" VALUES(4,2,0,'4');
INSERT INTO "names" VALUES(2,1,1,'2');
INSERT INTO "names" VALUES(2,2,1,'bad');
INSERT INTO "names" VALUES(3,1,1,'2');
INSERT INTO "names" VALUES(3,2,1,'food');
INSERT INTO "names" VALUES(4,1,1,'2');
INSERT INTO "names" VALUES(4,2,1,'2');
CREATE TABLE questions (
	code INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	PRIMARY KEY (code), 
	UNIQUE (name)
);
INSERT INTO "questions" VALUES(0,'votes');
INSERT INTO "questions" VALUES(1,'grüße');
INSERT INTO "questions" VALUES(2,'1:mood');
INSERT INTO "questions" VALUES(3,'1:topics');
INSERT INTO "questions" VALUES(4,'1:stars');
CREATE TABLE records (
	number INTEGER NOT NULL, 
	source TEXT NOT NULL, 
	question INTEGER NOT NULL, 
	task INTEGER NOT NULL, 
	worker INTEGER, 
	label INTEGER NOT NULL, 
	time FLOAT, 
	PRIMARY KEY (number), 
	UNIQUE (source, question)
);
INSERT INTO "records" VALUES(1,'of:["votes", "t1", "ann"]',0,0,0,0,NULL);
INSERT INTO "records" VALUES(3,'of:["votes", "t2", "ann"]',0,1,0,0,NULL);
INSERT INTO "records" VALUES(4,'of:["votes", "t2", "bob"]',0,1,1,0,1700000003.5);
INSERT INTO "records" VALUES(5,'of:["votes", "t3", "cy"]',0,2,2,1,NULL);
INSERT INTO "records" VALUES(6,'of:["votes", "t1", "bob"]',0,0,1,0,NULL);
INSERT INTO "records" VALUES(7,'id:["gr\u00fc\u00dfe", "v-1"]',1,0,0,0,NULL);
INSERT INTO "records" VALUES(8,'id:["gr\u00fc\u00dfe", "v-2"]',1,1,0,1,NULL);
INSERT INTO "records" VALUES(9,'of:["votes", "t4", null]',0,3,NULL,0,NULL);
INSERT INTO "records" VALUES(10,'id:["votes", "v-1"]',0,2,2,1,NULL);
INSERT INTO "records" VALUES(11,'label-studio:1',2,0,0,0,1.79485274289866709711e+09);
INSERT INTO "records" VALUES(12,'label-studio:1',3,0,0,0,1.79485274289866709711e+09);
INSERT INTO "records" VALUES(13,'label-studio:1',4,0,0,0,1.79485274289866709711e+09);
INSERT INTO "records" VALUES(14,'label-studio:2',2,0,1,1,1.79485274326868391031e+09);
INSERT INTO "records" VALUES(15,'label-studio:2',3,0,1,1,1.79485274326868391031e+09);
INSERT INTO "records" VALUES(16,'label-studio:2',4,0,1,1,1.79485274326868391031e+09);
INSERT INTO "records" VALUES(17,'label-studio:4',2,1,NULL,1,1.79485274466837811473e+09);
CREATE INDEX records_of_task ON records (question, task);
COMMIT;
